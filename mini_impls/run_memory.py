"""How many bytes of tensors lived on a rank and when, from what the profiler saw.

Leaves out:
- on the CPU, what was allocated on a thread that nobody records, and the end of what is
  freed on one, as copies and transfers are, until its memory is used again
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from mini_impls.run_events import Event

MEMORY = "[memory]"
"""The name of what the profiler says of each allocation."""


def live_bytes(events: Iterable[Event]) -> list[tuple[float, int]]:
    """Return the bytes that lived after each allocation and each free, in order.

    On a GPU, where there is one, and on the CPU where not. Units: microseconds, bytes.
    """
    found = [event for event in events if event.get("name") == MEMORY]
    shown = max((_device(event) for event in found), default=0)  # the CPU is 0
    found = [event for event in found if _device(event) == shown]
    if not shown:
        return _replay(sorted(found, key=lambda event: float(event["ts"])))
    return [(float(each["ts"]), int(each["args"]["Total Allocated"])) for each in found]


def _device(event: Event) -> int:
    return int(event["args"].get("Device Type", 0))


def _replay(events: Sequence[Event]) -> list[tuple[float, int]]:
    """Return the same of the CPU, whose own counter never falls by an unseen free.

    It counts on from one recording to the next, too, with all that ended in between.
    """
    heap, live = _Heap(), []
    for event in events:
        start, size = int(event["args"]["Addr"]), int(event["args"]["Bytes"])
        if size > 0:
            heap.allocate(start, size)
        else:
            heap.free(start)
        live.append((float(event["ts"]), heap.total))
    return live


class _Heap:
    """Blocks that live, by address."""

    def __init__(self) -> None:
        self.total = 0
        self._starts: list[int] = []
        self._sizes: dict[int, int] = {}

    def allocate(self, start: int, size: int) -> None:
        """Add a block; what it overlaps has been freed unseen."""
        first = bisect_left(self._starts, start)
        if first and self._end(self._starts[first - 1]) > start:
            first -= 1
        stop = bisect_left(self._starts, start + size)
        for gone in self._starts[first:stop]:
            self.total -= self._sizes.pop(gone)
        self._starts[first:stop] = [start]
        self._sizes[start] = size
        self.total += size

    def free(self, start: int) -> None:
        """Remove a block, if it was there."""
        if start in self._sizes:
            self.total -= self._sizes.pop(start)
            del self._starts[bisect_left(self._starts, start)]

    def _end(self, start: int) -> int:
        return start + self._sizes[start]
