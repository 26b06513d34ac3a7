"""A rank's step drawn by the clock: both sides on one scale of time.

Each side computes above, sends and receives below that, darker where nothing hides it;
under both are its calls, from issue to wait, each wait as long as it took.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from markupsafe import Markup, escape

from readerkit.evidence.clock import Span, StepClock, length
from readerkit.evidence.record import Event, RankEvents, Record
from readerkit.model.language import Say
from readerkit.render.html.charts import box, label, spoken
from readerkit.render.html.lanes_chart import LanesView, unwatched
from readerkit.render.html.words import Words
from readerkit.wording.numbers import format_milliseconds, format_seconds

_GUTTER, _WIDTH = 66, 1034
"""What there is room for on a wide screen; on others it scrolls."""
_LINE = 15
"""How high a line of words is, and a lane."""
_TICKS = 8
"""Marks on the scale, at most."""


def clock_view(
    words: Words, record: Record, rank: RankEvents, short: Mapping[str, str]
) -> LanesView | None:
    """Return the step of a rank by the clock; None where nobody measured it."""
    clocks = {each.side: each for each in record.clocks if each.rank == rank.rank}
    if len(clocks) < 2:
        return None
    longest = max(each.step_us for each in record.clocks)
    per_us = _WIDTH / max(longest, 1)
    parts: list[Markup] = []
    top = 0
    sides = (record.upstream, clocks["upstream"]), ("mini", clocks["mini"])
    for title, clock in sides:
        drawn = _TimedSide(words, clock, getattr(rank, clock.side), per_us, top, short)
        parts += drawn.parts(title)
        top = drawn.bottom + 12
    scale = list(_scale(longest, per_us, top))
    opening = (
        '<svg class="lanes clock" role="img" width="{w}" height="{h}" '
        'viewBox="0 0 {w} {h}" aria-labelledby="{n}-c" data-rank="{r}">'
    )
    name = f"clock-{record.comparison}-{rank.rank}"
    size = {"w": _GUTTER + _WIDTH + 30, "h": top + _LINE}
    start = Markup(opening).format(**size, n=name, r=rank.rank)
    image = start + Markup("").join([*scale, *parts]) + Markup("</svg>")
    told = [partial(_told, title, clock) for title, clock in sides]
    told += [partial(_measured, record), partial(unwatched, record, rank.rank)]
    return LanesView(image, tuple(map(words.text, told)))


def _scale(longest: int, per_us: float, bottom: int) -> Iterator[Markup]:
    """Yield a line and a number for each round time of a step, in milliseconds."""
    unit = next(
        step * 10**power
        for power in range(2, 12)
        for step in (1, 2, 5)
        if longest <= _TICKS * step * 10**power
    )
    for at in range(0, longest + 1, unit):
        x = _GUTTER + at * per_us
        yield box(x, _LINE, 0.5, bottom - _LINE - 8, "grid")
        yield label(x + 3, bottom + 6, "tick", format_milliseconds(at / 1e6))


@dataclass(frozen=True)  # no slots: what is cached is kept in its dict
class _TimedSide:
    """One side of a step: its phases, what it computes and moves, then its calls."""

    words: Words
    clock: StepClock
    events: Sequence[Event]
    per_us: float
    top: int
    short: Mapping[str, str]

    @cached_property
    def flights(self) -> list[Span]:
        """From its issue to the end of its wait, each call."""
        both = zip(self.clock.issues, self.clock.waits, strict=True)
        return [
            (start, max(end, wait[1] if wait else 0)) for (start, end), wait in both
        ]

    @cached_property
    def rows(self) -> list[int]:
        """The row of each call: the first that is free for all of it."""
        free: list[int] = []
        found: list[int] = []
        for start, end in self.flights:
            row = next((n for n, at in enumerate(free) if at <= start), len(free))
            free[row : row + 1] = [end]
            found.append(row)
        return found

    @cached_property
    def row(self) -> int:
        """How high a call is: many at once are thin."""
        return max(3, min(_LINE, 90 // max(self._count, 1)))

    @cached_property
    def _count(self) -> int:
        return 1 + max(self.rows, default=0)

    @property
    def bottom(self) -> int:
        return self.top + 4 * _LINE + self._count * (self.row + 1)

    def parts(self, title: str) -> Iterator[Markup]:
        yield label(0, self.top + 11, "side", title)
        yield from self._phases()
        lanes = (
            (lambda say: say("computes"), ("computing", "product")),
            (lambda say: say("transfers"), ("moving", "beside")),
        )
        spans = (
            (self.clock.computing, self.clock.products),
            (self.clock.moving, self.clock.hidden),
        )
        for lane, (tell, kinds) in enumerate(lanes, 2):
            y = self.top + lane * _LINE
            yield spoken(self.words, 0, y + 9, "lane-name", tell)
            for kind, times in zip(kinds, spans[lane - 2], strict=True):
                yield self._bars(y + 6, kind, times)
        y = self.top + 4 * _LINE
        if self.events:
            yield spoken(self.words, 0, y + 9, "lane-name", lambda say: say("calls"))
        for index, row in enumerate(self.rows):
            yield from self._call(index, y + row * (self.row + 1))
        y = self.top + _LINE
        yield box(self._x(self.clock.step_us), y, 1.5, self.bottom - y, "end")

    def _x(self, at: int) -> float:
        return _GUTTER + at * self.per_us

    def _bars(self, middle: int, kind: str, spans: Iterable[Span]) -> Markup:
        """Return bars as one line with gaps: there are a hundred of them in a step."""
        sizes = [(self._x(a), max((b - a) * self.per_us, 0.3)) for a, b in spans]
        drawn = "".join(f"M{x:.1f} {middle}h{width:.1f}" for x, width in sizes)
        return Markup('<path class="{}" d="{}"/>').format(kind, drawn or "M0 0")

    def _phases(self) -> Iterator[Markup]:
        """Yield the phases of the calls: what is before and after has none."""
        spans: list[tuple[str, int, int]] = []
        for event, (start, end) in zip(self.events, self.flights, strict=True):
            if spans and spans[-1][0] == event.phase:
                start, end = spans[-1][1], max(end, spans.pop()[2])
            spans.append((event.phase, start, end))
        nexts = [*(start for _, start, _ in spans[1:]), self.clock.step_us]
        y = self.top + _LINE
        for (phase, start, last), following in zip(spans, nexts, strict=False):
            end = min(last, following)
            x, width = self._x(start), (end - start) * self.per_us
            yield box(x, y + 12, max(width - 1, 0.5), 2, "phase-line")
            name = phase if width > 7 * len(phase) else phase[0].upper()
            if width > 8:
                yield label(x, y + 10, "phase-of", name)

    def _call(self, index: int, y: int) -> Iterator[Markup]:
        event, (start, end) = self.events[index], self.flights[index]
        issue, wait = self.clock.issues[index], self.clock.waits[index]
        times = [*issue, *(wait or ())]
        named = f'data-event="{self.clock.side[0]}{index}"'
        took = f'data-us="{" ".join(map(str, times))}"'
        yield Markup(f'<g class="op-{escape(event.op)}" {named} {took}>')
        yield self._box(start, end, y, "call" if wait else "call unseen-wait")
        yield self._box(*issue, y, "issues")
        if wait:
            yield self._box(*wait, y, "waits")
        name = self.short.get(event.op, "")
        if self.row >= 10 and (end - start) * self.per_us > 10 * len(name):
            yield label(self._x(start) + 3, y + self.row - 4, "call-name", name)
        yield Markup("</g>")

    def _box(self, start: int, end: int, y: int, kind: str) -> Markup:
        width = max((end - start) * self.per_us, 0.5)
        return box(self._x(start), y, width, self.row, kind)


def _told(name: str, clock: StepClock, say: Say) -> str:
    told = say(
        "{name}: a step of {step}; it computes for {computing}, and waits for calls "
        "for {waiting}; of the {moving} in which something is sent or received, "
        "{hidden} are hidden under what is computed."
    )
    spans = {
        "computing": clock.computing,
        "waiting": clock.waiting,
        "moving": clock.moving,
        "hidden": clock.hidden,
    }
    times = {what: format_seconds(length(each) / 1e6) for what, each in spans.items()}
    return told.format(name=name, step=format_seconds(clock.step_us / 1e6), **times)


def _measured(record: Record, say: Say) -> str:
    told = say(
        "Measured by torch's profiler in steps of their own, of which the fastest is "
        "drawn: it takes longer by what that costs."
    )
    cores = record.environment.get("cores", "")
    if cores.isdecimal() and record.world_size > int(cores):
        crowded = say("{ranks} ranks share {cores} cores: they wait for these, too.")
        told += " " + crowded.format(ranks=record.world_size, cores=cores)
    return told
