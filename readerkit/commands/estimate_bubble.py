"""``readerkit estimate bubble``: a pipeline's idle time, and its schedule drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from readerkit.commands.estimate_options import (
    COUNT,
    EstimateCommand,
    brief_option,
    print_json,
    show,
)
from readerkit.commands.options import json_option


@click.command(
    cls=EstimateCommand,
    short_help="A pipeline's idle time, activations held, and its grid.",
)
@click.option("-p", "--stages", type=COUNT, required=True, help="Pipeline ranks.")
@click.option("-m", "--microbatches", type=COUNT, required=True, help="In a step.")
@click.option("-v", "--virtual-stages", type=COUNT, default=1, help="Chunks of a rank.")
@click.option(
    "--schedule",
    help="gpipe, 1f1b (default), interleaved, zb-h1 or zb-h2; 'all' for each.",
)
@click.option("--forward", type=COUNT, default=1, help="Time of a forward.")
@click.option(
    "--backward",
    type=COUNT,
    default=1,
    help="Time of a backward; of its input's half for zero-bubble schedules.",
)
@click.option("--weight", type=COUNT, default=1, help="Time of the weights' half.")
@click.option("--grid", is_flag=True, help="Draw the schedule as text.")
@click.option(
    "--svg", type=click.Path(dir_okay=False, path_type=Path), help="Draw it to a file."
)
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
        readerkit estimate bubble -p 4 -m 8 --schedule zb-h1 --svg ~/zb.svg
    """
    from readerkit.estimate import bubble as bubbles

    if schedule is None:
        schedule = "interleaved" if virtual_stages > 1 else "1f1b"
    sizes: dict[str, Any] = {"stages": stages, "microbatches": microbatches} | times
    left_out = ""
    if schedule == "all":
        names = [name for name in bubbles.SCHEDULES if name != "interleaved"]
        if microbatches < 2 * stages - 1:
            names.remove("zb-h2")
            left_out = f"zb-h2 needs 2 p - 1 = {2 * stages - 1} microbatches"
        chosen = [(name, 1) for name in names]
        if virtual_stages > 1:
            chosen.insert(2, ("interleaved", virtual_stages))
    else:
        chosen = [(schedule, virtual_stages)]
    both_halves = sizes | {"backward": times["backward"] + times["weight"]}

    def of(name: str) -> dict[str, Any]:
        # Beside schedules that split the backward, a whole one takes both halves.
        whole = schedule == "all" and not name.startswith("zb")
        return both_halves if whole else sizes

    estimates = [
        bubbles.estimate_bubble(schedule=name, virtual_stages=v, **of(name))
        for name, v in chosen
    ]
    # Of several, those that can be drawn; the only one, or a complaint.
    drawn = {
        name: bubbles.grid(schedule=name, virtual_stages=v, **of(name))
        for name, v in chosen
        if grid and (name != "zb-h2" or len(chosen) == 1)
    }
    if svg:
        from readerkit.render.schedule_svg import schedule_svg
        from readerkit.upstreams.store import write_atomically

        if not svg.parent.is_dir():
            raise click.UsageError(f"--svg: no such folder: {svg.parent}")
        name, v = chosen[0]
        bars = bubbles.bars(schedule=name, virtual_stages=v, **sizes)
        write_atomically(svg, schedule_svg(bars, stages).encode())
    if as_json:
        plain: dict[str, Any] = {"estimates": [each.to_plain() for each in estimates]}
        if left_out:
            plain["not_shown"] = [left_out]
        print_json(plain | ({"grids": drawn} if grid else {}))
        return
    show(estimates, as_json=False, brief=brief)
    if svg:
        click.echo(f"\nwrote {svg}: {chosen[0][0]}")
    if left_out:
        click.echo(f"\nnot shown: {left_out}")
    for name, text in drawn.items():
        click.echo(f"\n{name}\n{text}")
