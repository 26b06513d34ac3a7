"""Published runs beside what is predicted for them, as text of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import click

from readerkit.estimate.plan import name_layout
from readerkit.estimate.runs import FAR, FIRST, NEAR, Compared, CutPlace, HalfTally
from readerkit.model.language import Say, Told, english, said

_WIDTH = 80
HEAD = ("run", "part", "GPUs", "measured", "predicted", "off", "place", "of all")
_WIDTHS = (26, 5, 5, 9, 9, 7, 6, 6)


def runs_table(
    compared: Sequence[Compared],
    halves: Mapping[str, HalfTally],
    say: Say = english,
    say_of: Say = english,
) -> str:
    """Return a row for each run, for one alone its layouts too, and each half's sum."""
    lines = [click.style(_row([*map(say, HEAD)]), bold=True)]
    lines += [_row(run_cells(each)) for each in compared]
    if len(compared) == 1:
        lines += _alone(compared[0], say)
    lines += [""] if halves else []
    for each in half_texts(halves):
        lines += _wrap(said(each, say))
    lines += ["", *_wrap(say_of(READING))]
    return "\n".join(lines)


def half_texts(halves: Mapping[str, HalfTally]) -> list[Told]:
    """Return a sentence for each half: how near its predictions came."""
    return [
        Told(
            "{half}: {near} of {runs} within {small}, {not_far} within {large}, the "
            "worst {worst}; the published cut among the first {first}: {found}, of all "
            "means {found_of_any}",
            half=half,
            near=tally.near,
            runs=tally.runs,
            small=f"{NEAR:.0%}",
            not_far=tally.not_far,
            large=f"{FAR:.0%}",
            worst=f"{tally.worst:+.1%}",
            first=FIRST,
            found=tally.first,
            found_of_any=tally.first_of_any,
        )
        for half, tally in halves.items()
    ]


READING = (
    "Off is predicted over measured, less one. Place is that of the published cut "
    "(tp, pp, cp, ep, dp) among those that fit, planned with the run's own ZeRO stage, "
    "recompute and sequence parallelism; of all: with all that a plan tries today; -: "
    "it does not fit by our count of memory. Constants were fitted to the half fit "
    "(tools/fit_efficiency.py), never to judge; a run of neither is unconfirmed, "
    "or yours."
)


def run_cells(each: Compared) -> tuple[str, ...]:
    """Return a run, a cell for each word of ``HEAD``."""
    run = each.run
    return (
        run.name,
        run.half or "-",
        str(run.layout.world_size),
        f"{run.seconds:.2f} s",
        f"{each.predicted:.2f} s",
        f"{each.error:+.1%}",
        _place(each.same_means),
        _place(each.any_means),
    )


def _place(place: CutPlace) -> str:
    return f"{place.place or '-'}/{place.cuts}"


def _alone(each: Compared, say: Say) -> list[str]:
    run = each.run
    lines = _wrap(say("from {source}").format(source=run.source))
    lines += _wrap(say("ran {layout}").format(layout=name_layout(run.layout)))
    if run.assumed:
        told = say("not in the source, assumed: {assumed}")
        lines += _wrap(told.format(assumed=run.assumed))
    for place, best, none in (
        (
            each.same_means,
            say("best of its means: {layout}, recompute {recompute}, predicted {time}"),
            say("best of its means: nothing fits"),
        ),
        (
            each.any_means,
            say("best of all: {layout}, recompute {recompute}, predicted {time}"),
            say("best of all: nothing fits"),
        ),
    ):
        if place.best is None:
            lines.append(none)
            continue
        told = best.format(
            layout=name_layout(place.best),
            recompute=place.best.recompute,
            time=f"{place.best_seconds:.2f} s",
        )
        lines += _wrap(told)
    return lines


def _row(cells: Sequence[str]) -> str:
    first, *others = zip(cells, _WIDTHS, strict=True)
    return " ".join(
        [f"{first[0]:<{first[1]}}", *(f"{cell:>{width}}" for cell, width in others)]
    )


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent="  ")
