"""A rank's step drawn on one scale: calls in flight over the products beside them.

What it shows is said below it, and each call stands in the list of events too: a
drawing is for the eye and the mouse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from markupsafe import Markup

from readerkit.evidence.lanes import Lane, Lanes
from readerkit.evidence.record import Event, RankEvents, Record
from readerkit.model.language import Say
from readerkit.render.html.charts import Tell, box, label
from readerkit.render.html.words import Text, Words
from readerkit.wording.numbers import format_seconds

_WIDTH = 1100
"""What there is room for on a wide screen; longer steps scroll."""
_UNIT = (6, 22)
"""How wide a column is, at least and at most."""
_LINE = 15
"""How high a line of words is, and the products."""
_SMALL = 10
"""A call lower than this has no room for its name."""


@dataclass(frozen=True, slots=True)
class LanesView:
    """The drawing of a rank's step, and what it says in words."""

    image: Markup
    caption: tuple[Text, ...]


def lanes_view(
    words: Words, record: Record, rank: RankEvents, short: Mapping[str, str]
) -> LanesView:
    """Return the step of a rank as a drawing; ``short`` names operations."""
    lanes = Lanes.of(rank)
    name = f"lanes-{record.comparison}-{rank.rank}"
    low, high = _UNIT
    unit = max(low, min(high, _WIDTH // max(lanes.columns, 1)))
    parts: list[Markup] = []
    top = 0
    for side, title, lane, events in (
        ("u", record.upstream, lanes.upstream, rank.upstream),
        ("m", "mini", lanes.mini, rank.mini),
    ):
        drawn = _Side(side, lane, events, unit, top, short)
        parts += drawn.parts(title)
        top = drawn.bottom + 10
    opening = (
        '<svg class="lanes" role="img" width="{w}" height="{h}" viewBox="0 0 {w} {h}" '
        'aria-labelledby="{n}-c" data-rank="{r}">'
    )
    width = max(lanes.columns * unit + 2, 240)
    start = Markup(opening).format(w=width, h=top, n=name, r=rank.rank)
    image = start + Markup("").join(parts) + Markup("</svg>")
    told: list[Tell] = [
        partial(_told, record.upstream, lanes.upstream, rank.upstream),
        partial(_told, "mini", lanes.mini, rank.mini),
        lambda say: say(
            "One scale for both sides: a column for each matrix product, each issue "
            "and each wait, as they came."
        ),
    ]
    if not record.clocks:
        told += [
            lambda say: say("It has no seconds: nobody measured a step by the clock."),
            partial(unwatched, record, rank.rank),
        ]
    return LanesView(image, tuple(map(words.text, told)))


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a step: words, products, then calls, row by row."""

    side: str
    lane: Lane
    events: Sequence[Event]
    unit: int
    top: int
    short: Mapping[str, str]

    @property
    def row(self) -> int:
        """How high a call is: many at once are thin."""
        return max(3, min(18, 90 // self.lane.rows))

    @property
    def bottom(self) -> int:
        return self.top + 3 * _LINE + self.lane.rows * (self.row + 1)

    def parts(self, title: str) -> Iterator[Markup]:
        yield label(0, self.top + 11, "side", title)
        for span in self.lane.phases:
            x = span.first * self.unit
            width = (span.last - span.first + 1) * self.unit
            y = self.top + _LINE
            yield box(x, y + 12, width - 1, 2, "phase-line")
            name = span.name if width > 7 * len(span.name) else span.name[0].upper()
            if width > 8:
                yield label(x, y + 10, "phase-of", name)
        y = self.top + 2 * _LINE
        for product in self.lane.products:
            kind = "product beside" if product.is_beside else "product"
            inset = 0 if product.is_beside else 4
            x = product.column * self.unit + 1
            yield box(x, y + inset, self.unit - 2, _LINE - 3 - inset, kind)
        for flight in self.lane.flights:
            yield from self._call(flight.event, flight.first, flight.last, flight.row)

    def _call(self, index: int, first: int, last: int, row: int) -> Iterator[Markup]:
        event = self.events[index]
        y = self.top + 3 * _LINE + row * (self.row + 1)
        x, end = first * self.unit, last * self.unit
        op = f"op-{event.op}"
        opening = Markup('<g class="{}" data-event="{}{}">')
        yield opening.format(op, self.side, index)
        if event.wait is None:
            yield box(x, y, self.unit - 1, self.row, "call unseen-wait")
        else:
            yield box(x, y, end - x + self.unit - 1, self.row, "call")
            yield box(end, y, self.unit - 1, self.row, "waits")
        name = self.short.get(event.op, "")
        if self.row >= _SMALL and end - x > 9 * len(name):
            yield label(x + 3, y + self.row - 4, "call-name", name)
        yield Markup("</g>")


def _told(name: str, lane: Lane, events: Sequence[Event], say: Say) -> str:
    unseen = sum(event.wait is None for event in events)
    if unseen:
        told = say(
            "{name}: {calls} calls, {unseen} of them waited for where nobody sees it, "
            "so at least {beside} of {products} matrix products ran beside a call in "
            "flight."
        )
    else:
        told = say(
            "{name}: {beside} of {products} matrix products ran beside a call in "
            "flight; {calls} calls, at most {most} at once."
        )
    return told.format(
        name=name,
        beside=lane.beside,
        products=len(lane.products),
        calls=len(events),
        most=lane.rows,
        unseen=unseen,
    )


def unwatched(record: Record, rank: int, say: Say) -> str:
    """Return how long unwatched steps took; nothing where that is unknown."""
    measured = next((times for times in record.times if times.rank == rank), None)
    if measured is None or not (measured.mini and measured.upstream):
        return ""
    return say(
        "Unwatched, a step took {upstream} upstream and {mini} in the mini (medians of "
        "{count} steps)."
    ).format(
        upstream=format_seconds(median(measured.upstream)),
        mini=format_seconds(median(measured.mini)),
        count=len(measured.mini),
    )
