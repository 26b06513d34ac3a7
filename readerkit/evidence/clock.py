"""When each call of a step was issued and waited for, and what its rank computed.

Measured in steps after all others, of which the fastest is kept. Torch's profiler notes
the times, and a step takes longer by what that costs.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, pairwise, product

from readerkit.content.vocabulary import SideName
from readerkit.model.stored import Stored

Span = tuple[int, int]
"""Start and end, in microseconds from the start of the step."""


class StepClock(Stored, frozen=True):
    """The times of one rank's step, on one side."""

    rank: int
    side: SideName
    step_us: int
    issues: tuple[Span, ...]
    """Of each event, from its call until that returned."""
    waits: tuple[Span | None, ...]
    """Of each event; None where C++ waits, or one could not be told from another."""
    moving: tuple[Span, ...]
    """The backend sent or received."""
    computing: tuple[Span, ...]
    """Operations of torch ran, but for those inside of a call."""
    products: tuple[Span, ...]
    """Those of them that are matrix products."""

    def __post_init__(self) -> None:
        """Refuse times that are not in order, or not of the step."""
        if len(self.issues) != len(self.waits):
            raise ValueError(f"{len(self.issues)} issues, but {len(self.waits)} waits")
        rows = (self.issues, self.moving, self.computing, self.products)
        starts = ([start for start, _ in row] for row in rows)
        if any(one > other for row in starts for one, other in pairwise(row)):
            raise ValueError("times that are not in order")
        each = chain(*rows, filter(None, self.waits))
        if not all(0 <= start <= end <= self.step_us for start, end in each):
            raise ValueError(f"times outside of the step's {self.step_us} us")

    @property
    def waiting(self) -> list[Span]:
        """Return when Python stood in a wait."""
        return joined(filter(None, self.waits))

    @property
    def hidden(self) -> list[Span]:
        """Return when the backend moved something while the rank computed."""
        return within(self.moving, self.computing)


def joined(spans: Iterable[Span], gap: int = 0) -> list[Span]:
    """Return the same time in order, in spans that are further apart than a gap."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1] + gap:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def within(ours: Iterable[Span], theirs: Iterable[Span]) -> list[Span]:
    """Return the time that is in both."""
    pairs = product(joined(ours), joined(theirs))
    both = ((max(a, b), min(end, stop)) for (a, end), (b, stop) in pairs)
    return joined((start, end) for start, end in both if start < end)


def length(spans: Iterable[Span]) -> int:
    """Return how long spans are together; what overlaps counts once."""
    return sum(end - start for start, end in joined(spans))
