"""What the calls of a step are for: both sides by the section of a mirror they are of.

Where two sides share no call, this is what can be set side by side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readerkit.content.mirrors import Mirror, MirroredEvent
from readerkit.content.vocabulary import Phase, SideName
from readerkit.evidence.executed_lines import belongs
from readerkit.evidence.record import Event, Record


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one operation in one phase of a rank's step."""

    phase: Phase
    op: str
    count: int
    bytes: int
    """Payload of all of them."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """What some calls of either side are for."""

    section: int
    """Of the mirror, from 1; 0 for calls that no section means."""
    upstream: tuple[Calls, ...]
    mini: tuple[Calls, ...]

    @property
    def is_as_many_bytes(self) -> bool:
        """Whether both sides hand over as much for it."""
        up, mini = (
            sum(calls.bytes for calls in side) for side in (self.upstream, self.mini)
        )
        return up == mini


def purposes(record: Record, mirror: Mirror) -> Iterator[Purpose]:
    """Yield what rank 0's calls are for, section by section, each call once."""
    named: list[tuple[int, MirroredEvent]] = [
        (number, event)
        for number, section in enumerate(mirror.sections, 1)
        for comparison, event in section.named_events()
        if comparison == record.comparison
    ]

    def section_of(event: Event) -> int:
        return next((number for number, each in named if belongs(event, each)), 0)

    rank = record.events[0]
    numbers = [number for number, _ in named]
    for section in (*dict.fromkeys(numbers), 0):
        upstream, mini = (
            tuple(_calls([event for event in side if section_of(event) == section]))
            for side in (rank.upstream, rank.mini)
        )
        if upstream or mini:
            yield Purpose(section, upstream, mini)


def _calls(events: Sequence[Event]) -> Iterator[Calls]:
    for phase, op in dict.fromkeys((event.phase, event.op) for event in events):
        sizes = [e.payload_bytes for e in events if (e.phase, e.op) == (phase, op)]
        yield Calls(phase, op, len(sizes), sum(sizes))


SENT = ("payload of all calls", "sent, by the textbook", "written to sockets")
"""What one rank sends in a step, as tables call it."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Bytes of rank 0 on either side."""

    what: str
    """One of ``SENT``, or a category of what is kept between steps."""
    upstream: float
    mini: float


def amounts(record: Record) -> Iterator[Amount]:
    """Yield what one rank sends in a step, then what it keeps between steps."""
    totals = [total for total in record.totals if total.rank == 0]
    rows: list[tuple[str, SideName, float]] = [
        *((SENT[0], total.side, total.payload_bytes) for total in totals),
        *((SENT[1], total.side, total.algorithm_bytes) for total in totals),
        *((SENT[2], wire.side, wire.bytes) for wire in record.wire if wire.rank == 0),
        *((h.category, h.side, h.bytes) for h in record.held if h.rank == 0),
    ]
    sums: defaultdict[tuple[str, SideName], float] = defaultdict(float)
    for what, side, size in rows:
        sums[what, side] += size
    for what in dict.fromkeys(what for what, _, size in rows if size):
        yield Amount(what, sums[what, "upstream"], sums[what, "mini"])
