"""Pipeline schedules that play along time, all of a group on one scale with one key.

Every one does the same work: a forward takes two units of time, a backward four; where
it is split, two and two; a chunk of two takes half. So widths can be compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from readerkit.estimate.bubble import SPLIT, Pipeline
from readerkit.estimate.planned_steps import PlannedStep, chunk_name
from readerkit.model.language import Say
from readerkit.render.html.charts import label
from readerkit.render.html.words import Text, Words

STAGES, MICROBATCHES, CHUNKS = 4, 8, 2
SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2")
_WHOLE = {"forward": 2, "backward": 4}
_HALVES = {"forward": 2, "backward": 2, "weight": 2}
_CHUNKED = {"forward": 1, "backward": 2}
TICK = 2
"""Units of time of one frame: a forward."""
_LEFT, _ROW, _UNIT = 35, 14, 5.2
"""Narrow, for a phone: the style sheet draws it larger where there is room."""


@dataclass(frozen=True, slots=True)
class PlayedSchedule:
    """One schedule: its drawing, what it comes to, the order of each rank."""

    name: str
    image: Markup
    caption: Text
    orders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchedulePlayer:
    """Schedules on one scale."""

    name: str
    schedules: tuple[PlayedSchedule, ...]
    ticks: int
    ranks: int


def pipeline(schedule: str) -> Pipeline:
    """Return a schedule of the group, whose work is that of all others."""
    sizes = {"schedule": schedule, "stages": STAGES, "microbatches": MICROBATCHES}
    if schedule == "interleaved":
        return Pipeline.parse({**sizes, **_CHUNKED, "virtual_stages": CHUNKS})
    return Pipeline.parse({**sizes, **(_HALVES if schedule in SPLIT else _WHOLE)})


def schedule_player(words: Words, name: str) -> SchedulePlayer:
    """Return the group of all schedules."""
    each = {schedule: pipeline(schedule) for schedule in SCHEDULES}
    bars = {schedule: one.bars() for schedule, one in each.items()}
    end = max(bar.end for steps in bars.values() for bar in steps)
    played = tuple(
        PlayedSchedule(
            schedule,
            _image(f"{name}-{schedule}", schedule, steps, end),
            words.text(partial(_caption, schedule, each[schedule], steps)),
            tuple(_order(steps, rank) for rank in range(STAGES)),
        )
        for schedule, steps in bars.items()
    )
    return SchedulePlayer(name, played, -(-end // TICK), STAGES)


def idle_of(steps: Sequence[PlannedStep]) -> int:
    """Return the longest wait of a rank between its first step and its last."""
    waits = []
    for rank in {step.rank for step in steps}:
        own = [step for step in steps if step.rank == rank]
        span = max(s.end for s in own) - min(s.start for s in own)
        waits.append(span - sum(s.end - s.start for s in own))
    return max(waits)


def _caption(
    schedule: str, one: Pipeline, steps: Sequence[PlannedStep], say: Say
) -> str:
    busy = sum(step.end - step.start for step in steps if step.rank == 0)
    idle = idle_of(steps)
    told = say(
        "{name}: a rank waits {idle} units beside {busy} of work, {share} of its time; "
        "the first rank holds the activations of {held} microbatches at most"
    )
    return told.format(
        name=schedule,
        idle=idle,
        busy=busy,
        share=f"{idle / (idle + busy):.1%}",
        held=f"{float(one.in_flight(0)):g}",
    )


def _order(steps: Sequence[PlannedStep], rank: int) -> str:
    own = sorted((s for s in steps if s.rank == rank), key=lambda s: s.start)
    chunked = any(step.chunk for step in steps)
    return " ".join(
        f"{s.kind}{s.microbatch}{chunk_name(s.chunk) if chunked else ''}" for s in own
    )


def _image(name: str, schedule: str, steps: Sequence[PlannedStep], end: int) -> Markup:
    width, height = _LEFT + end * _UNIT + 1, _ROW * STAGES + 1
    opening = (
        '<svg class="stage gantt{k}" role="img" viewBox="0 0 {w:g} {h:g}" '
        'width="{w:g}" height="{h:g}" aria-labelledby="{n}-t">'
        '<title id="{n}-t">{t}</title>'
    )
    start = Markup(opening).format(
        w=width,
        h=height,
        n=name,
        t=schedule,
        k=" fine" if any(step.chunk for step in steps) else "",
    )
    rows = [
        label(_LEFT - 4, _ROW * (rank + 0.5), "end", f"rank {rank}")
        for rank in range(STAGES)
    ]
    lanes = "".join(
        f"M{_LEFT} {_ROW * rank + 1}h{end * _UNIT:g}v{_ROW - 2}H{_LEFT}z"
        for rank in range(STAGES)
    )
    ground = Markup('<path class="lane" d="{}"/>').format(lanes)
    return (
        start
        + Markup("").join(rows)
        + ground
        + Markup("").join(_frames(steps))
        + Markup("</svg>")
    )


def _frames(steps: Sequence[PlannedStep]) -> Iterator[Markup]:
    """Yield what begins in each tick; all of it is shown where no script plays."""
    by_tick: dict[int, list[PlannedStep]] = defaultdict(list)
    for step in steps:
        by_tick[step.start // TICK].append(step)
    for tick, those in sorted(by_tick.items()):
        paths: dict[str, str] = defaultdict(str)
        texts = []
        for step in those:
            x, y = _LEFT + step.start * _UNIT, _ROW * step.rank + 1
            wide = (step.end - step.start) * _UNIT - 0.5
            kind = f"w{step.kind}{' c1' if step.chunk else ''}"
            paths[kind] += f"M{x:.1f} {y}h{wide:.1f}v{_ROW - 2}h{-wide:.1f}z"
            middle = _ROW * (step.rank + 0.5)
            texts.append(label(x + wide / 2, middle, "mid of", str(step.microbatch)))
        inner = Markup("").join(
            Markup('<path class="{}" d="{}"/>').format(kind, path)
            for kind, path in paths.items()
        )
        opening = Markup('<g class="frame on" data-at="{}">').format(tick)
        yield opening + inner + Markup("").join(texts) + Markup("</g>")
