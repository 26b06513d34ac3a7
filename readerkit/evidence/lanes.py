"""A rank's step on one scale for both sides: calls in flight over matrix products.

The clock is what a record has of time: the order of issues, waits and matrix products.
Both sides compute the same products, so that one product stands in one column on both;
between two of them there is a column for each issue and each wait that comes there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from readerkit.evidence.record import Event, RankEvents


@dataclass(frozen=True, slots=True)
class Flight:
    """A call from its issue to its wait."""

    event: int
    """Which of its side's."""
    first: int
    """Column of the issue."""
    last: int
    """Column of the wait; that of the issue where nobody saw one."""
    row: int
    """Below those that are still under way."""


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product."""

    column: int
    is_beside: bool
    """A call was in flight."""


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """Columns of calls of one phase, until one of another is issued."""

    name: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Lane:
    """The step of one side."""

    flights: tuple[Flight, ...]
    products: tuple[Product, ...]
    phases: tuple[PhaseSpan, ...]

    @property
    def rows(self) -> int:
        """How many calls are in flight at once, at most."""
        return 1 + max((flight.row for flight in self.flights), default=0)

    @property
    def beside(self) -> int:
        """How many products ran beside a call in flight."""
        return sum(product.is_beside for product in self.products)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The step of one rank."""

    columns: int
    upstream: Lane
    mini: Lane

    @classmethod
    def of(cls, rank: RankEvents) -> Lanes:
        """Return both sides of a rank's step on one scale."""
        sides = _moments(rank.upstream), _moments(rank.mini)
        counts = [Counter(gap for gap, *_ in side) for side in sides]
        gaps = 1 + max((gap for count in counts for gap in count), default=0)
        starts = [0]
        for gap in range(gaps):  # the columns of a gap, then one for the next product
            starts.append(starts[-1] + max(count[gap] for count in counts) + 1)
        upstream, mini = (
            _lane(events, side, starts)
            for events, side in zip((rank.upstream, rank.mini), sides, strict=True)
        )
        return cls(starts[-1] - 1, upstream, mini)


_Moment = tuple[int, int, int, bool]
"""Products before it, place in the order, event, whether it is a wait."""


def _moments(events: Sequence[Event]) -> list[_Moment]:
    """Return every issue and every wait of a side, as they came."""
    found: list[_Moment] = []
    for index, event in enumerate(events):
        found.append((event.products_before, event.issue, index, False))
        if event.wait is not None:
            gap = event.products_before + (event.products_hidden or 0)
            found.append((gap, event.wait, index, True))
    return sorted(found)


def _lane(
    events: Sequence[Event], moments: Sequence[_Moment], starts: Sequence[int]
) -> Lane:
    columns: dict[tuple[int, bool], int] = {}
    taken: Counter[int] = Counter()
    for gap, _, index, is_wait in moments:
        columns[index, is_wait] = starts[gap] + taken[gap]
        taken[gap] += 1
    flights = tuple(_flights(len(events), columns))
    ran = max((gap for gap, *_ in moments), default=0)
    products = tuple(
        Product(at, any(each.first < at < each.last for each in flights))
        for at in (start - 1 for start in starts[1 : ran + 1])
    )
    return Lane(flights, products, tuple(_phases(events, flights)))


def _flights(count: int, columns: Mapping[tuple[int, bool], int]) -> Iterator[Flight]:
    """Yield each call, in the first row that is free for all of it."""
    free: list[int] = []
    for index in sorted(range(count), key=lambda index: columns[index, False]):
        first = columns[index, False]
        last = columns.get((index, True), first)
        row = next((n for n, end in enumerate(free) if end < first), len(free))
        free[row : row + 1] = [last]
        yield Flight(index, first, last, row)


def _phases(events: Sequence[Event], flights: Sequence[Flight]) -> Iterator[PhaseSpan]:
    spans: list[tuple[str, int, int]] = []
    for flight in flights:
        phase = events[flight.event].phase
        if spans and spans[-1][0] == phase:
            spans[-1] = (phase, spans[-1][1], max(spans[-1][2], flight.last))
        else:
            spans.append((phase, flight.first, flight.last))
    for at, (name, first, last) in enumerate(spans):
        following = [start for _, start, _ in spans[at + 1 : at + 2]]
        yield PhaseSpan(name, first, min([last, *(start - 1 for start in following)]))
