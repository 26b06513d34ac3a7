"""``readerkit estimate bubble``: a pipeline's idle time, and its schedule drawn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.estimate_options import refuse_others
from readerkit.commands.options import json_option, written_file
from readerkit.commands.quantity_options import (
    COUNT,
    EstimateCommand,
    amount,
    either,
    word,
)
from readerkit.commands.shown_options import OptionGroup, brief_option, show
from readerkit.estimate.defaults import SCHEDULE
from readerkit.estimate.schedules import CHUNKED, SOURCES
from readerkit.terminal.as_json import print_json
from readerkit.wording.grid_blocks import fitting_grid

if TYPE_CHECKING:
    from readerkit.estimate.bubble import Pipeline

_NOT_SPLIT = frozenset(
    ("stages", "microbatches", "virtual_stages", "schedule", "forward", "backward")
) | {"grid", "svg"}


@click.command(cls=EstimateCommand)
@click.option("-p", "--stages", type=COUNT, required=True, help="Pipeline ranks.")
@click.option("-m", "--microbatches", type=COUNT, required=True, help="In a step.")
@click.option("-v", "--virtual-stages", type=COUNT, default=1, help="Chunks of a rank.")
@OptionGroup(
    word(
        "schedule",
        f"{either(SOURCES, SCHEDULE)}; 'all' for each.",
    ),
    amount("forward", "Time of a forward.", 1),
    amount(
        "backward",
        "Time of a backward; of its input's half for zero-bubble schedules.",
        1,
    ),
    amount("weight", "Time of the weights' half.", 1),
)
@click.option("--grid", is_flag=True, help="Draw the schedule as text.")
@click.option("--svg", type=written_file(), help="Draw it to a file.")
@brief_option
@json_option
def bubble(
    stages: int,
    microbatches: int,
    virtual_stages: int,
    schedule: str | None,
    grid: bool,
    svg: Path | None,
    as_json: bool,
    brief: bool,
    **times: Any,
) -> None:
    """Print the bubble as a share of ideal and of total time.

    \b
    Example:
        readerkit estimate bubble -p 4 -m 16
        readerkit estimate bubble -p 4 -m 8 -v 2 --grid
        readerkit estimate bubble -p 4 -m 10 --schedule dualpipe --grid
        readerkit estimate bubble -p 4 -m 8 -v 2 --schedule zb-interleaved --lang es
        readerkit estimate bubble -p 4 -m 8 --schedule zb-h1 --svg ~/zb.svg
    """
    from readerkit.estimate.bubble import Pipeline
    from readerkit.estimate.bubble_estimate import estimate_bubble

    if schedule is None:
        schedule = "interleaved" if virtual_stages > 1 else SCHEDULE
    sizes = {"stages": stages, "microbatches": microbatches} | times
    left_out: list[str] = []
    if schedule == "all":
        chosen, left_out = _comparable(sizes, virtual_stages)
    else:
        one = {"schedule": schedule, "virtual_stages": virtual_stages}
        chosen = [Pipeline.parse(sizes | one)]
        if not chosen[0].splits_backward:
            refuse_others(f"{schedule}, whose backward is one piece,", _NOT_SPLIT)
    estimates = [estimate_bubble(each) for each in chosen]
    drawn = {each.schedule: each.grid() for each in chosen if grid}
    if svg:
        _draw(chosen[0], svg)
    if as_json:
        plain: dict[str, Any] = {"estimates": [each.to_plain() for each in estimates]}
        if left_out:
            plain["not_shown"] = left_out
        print_json(plain | ({"grids": drawn} if grid else {}))
        return
    below = [f"wrote {svg}: {chosen[0].schedule}"] if svg else []
    below += [f"not shown: {reason}" for reason in left_out]
    below += [
        f"{name}\n{fitting_grid(text, sys.stdout)}" for name, text in drawn.items()
    ]
    told = "".join(f"\n{each}\n" for each in below)
    show(estimates, as_json=False, brief=brief, below=told)


def _comparable(sizes: dict[str, Any], chunks: int) -> tuple[list[Pipeline], list[str]]:
    """Return every schedule of these sizes on equal work, and what is left out."""
    from readerkit.errors import EstimateError
    from readerkit.estimate.bubble import Pipeline
    from readerkit.estimate.zero_bubble import ORDERS

    found, left_out = [], list[str]()
    for name in SOURCES:
        if name in CHUNKED and chunks == 1:
            left_out.append(f"{name}: got 1 chunk on each rank, expected more: -v 2")
            continue
        one: dict[str, Any] = sizes | {"schedule": name}
        if name in CHUNKED:
            one["virtual_stages"] = chunks
        if not Pipeline(name).splits_backward:
            # Beside those that split the backward, a whole one takes both halves.
            one["backward"] = sizes["backward"] + sizes["weight"]
        try:
            found.append(Pipeline.parse(one))
        except EstimateError as error:
            if name not in ORDERS:
                raise
            left_out.append(str(error))
    return found, left_out


def _draw(pipeline: Pipeline, svg: Path) -> None:
    from readerkit.app.folders import refuse_nowhere
    from readerkit.render.schedule_picture import schedule_svg
    from readerkit.upstreams.store import write_atomically

    refuse_nowhere(svg)
    drawn = schedule_svg(pipeline.bars(), pipeline.stages).encode()
    write_atomically(svg, drawn, named=True)
