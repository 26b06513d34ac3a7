"""What of a rank's events a picture shows: what teaches, and no more points than that.

Most of what torch records takes a microsecond, and most of that is inside of something
else that it records.

    linear                       | linear
      t  transpose  as_strided   |
      addmm                      |   addmm
    add_  mul_  sqrt  addcdiv_   | 4 short operations

Leaves out:
- views, allocations, and what only calls an operation that is recorded by itself
- what is shorter than `SHORT_US` inside something longer; where it stands by itself,
  all that follow one another are one
- of bytes that live, all but the most, the least and the last of each `WINDOW`
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import fmean
from typing import Any

from mini_impls.recorder import ALONE
from mini_impls.run_events import Event
from mini_impls.run_metrics import RecordedRank, Span, span_of

Live = tuple[float, int]
"""When so many bytes of tensors lived."""
SHORT_US = 5.0
PAUSE_US = 20.0
"""What follows after a longer one is not joined with what was before."""
WINDOW = 1 / 100
"""Part of a step."""
_PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "_grouped_mm", "mv", "dot"}
"""They are shown, however short."""
_PASSING = {
    "_conj", "_has_compatible_shallow_copy_type", "_local_scalar_dense",
    "_reshape_alias", "_to_copy", "_unsafe_view", "alias", "as_strided",
    "broadcast_tensors", "chunk", "conj", "contiguous", "detach", "detach_",
    "empty", "empty_like", "empty_permuted", "empty_strided", "expand", "expand_as",
    "flatten", "is_nonzero", "lift_fresh", "movedim", "narrow", "new_empty",
    "new_empty_strided", "numpy_T", "permute", "ravel", "reshape", "resize_",
    "resize_as_", "resolve_conj", "resolve_neg", "select", "set_", "slice", "split",
    "split_with_sizes", "squeeze", "t", "to", "transpose", "unbind", "unflatten",
    "unfold", "unsafe_chunk", "unsafe_split", "unsqueeze", "view", "view_as",
}  # fmt: skip
"""Views, allocations, and what only calls what is recorded by itself."""


@dataclass(slots=True)
class OperationBar:
    """A bar: one operation, or several short ones."""

    name: str
    span: Span
    shapes: list[list[int]] = field(default_factory=list)
    short: Counter[str] = field(default_factory=Counter)
    """How often each was there; nothing where it is one operation."""

    def join(self, name: str, span: Span) -> None:
        """Take one more short operation."""
        self.short[name] += 1
        self.span = self.span[0], max(self.span[1], span[1])
        count = self.short.total()
        self.name = f"{count} short operations" if count > 1 else name

    def told(self) -> dict[str, Any]:
        """Return what a viewer shows of it besides."""
        if self.short.total() > 1:
            return {"short": dict(self.short)}
        return {"shapes": self.shapes} if any(self.shapes) else {}


def shown_operations(operations: Iterable[Event]) -> list[OperationBar]:
    """Return what a picture shows of the operations of a rank, in order.

    All kernels of a GPU: there are neither views among them nor one inside another.
    """
    found: list[OperationBar] = []
    covered = 0.0  # up to here something stands already
    for event in sorted(operations, key=lambda each: (each["ts"], -each["dur"])):
        name, span = event["name"].removeprefix("aten::"), span_of(event)
        is_kernel = event.get("cat") == "kernel"
        if name in _PASSING and not is_kernel:
            continue
        if event["dur"] >= SHORT_US or name in _PRODUCTS or is_kernel:
            found.append(
                OperationBar(name, span, event.get("args", {}).get("Input Dims", []))
            )
        elif span[1] <= covered:
            continue
        elif found and found[-1].short and span[0] - covered < PAUSE_US:
            found[-1].join(name, span)
        else:
            found.append(OperationBar(name, span, short=Counter([name])))
        covered = max(covered, span[1])
    return found


def live_tracks(recorded: RecordedRank) -> Iterator[tuple[str, list[Live]]]:
    """Yield the tracks of bytes that lived: one, or one of each part."""
    steps = sorted(recorded.steps.values())
    own, beside = own_bytes(recorded)
    for name, live in (("", own), (f", {ALONE}", beside)):
        if live:
            yield f"bytes of tensors{name}", _extremes(live, steps)
    base_ns = recorded.trace.base_ns
    for part, counted in recorded.trace.counted.items():
        live = [((at - base_ns) / 1e3, size) for at, size in counted]
        yield f"bytes of tensors, {part}", _extremes(live, steps)


def own_bytes(recorded: RecordedRank) -> tuple[list[Live], list[Live]]:
    """Return what lived of a rank's own, and what of a comparison with one process.

    The table's peaks are those of the first: what the second keeps is taken off.
    """
    own: list[Live] = []
    beside: list[Live] = []
    alone = deque(sorted(recorded.alone))
    kept = last = 0
    for at, size in recorded.live:
        while alone and alone[0][1] < at:
            alone.popleft()
            kept = beside[-1][1] if beside else 0
        if alone and alone[0][0] < at:
            held = beside[-1][1] if beside else 0
            beside.append((at, held + size - last))
        else:
            own.append((at, size - kept))
        last = size
    return own, beside


def _extremes(live: Sequence[Live], steps: Sequence[Span]) -> list[Live]:
    """Return of each window the most, the least and the last, in order."""
    cuts = [at for step in steps for at in step]
    widths = [(end - start) * WINDOW for start, end in steps]
    usual = fmean(widths) if widths else PAUSE_US

    def window(point: Live) -> tuple[int, int]:
        segment = bisect_left(cuts, point[0])
        is_in_step = segment % 2 == 1
        width = widths[segment // 2] if is_in_step else usual
        return segment, int(point[0] / (width or PAUSE_US))

    found: list[Live] = []
    for _, points in groupby(live, window):
        here = [*points]
        sizes = [size for _, size in here]
        chosen = {sizes.index(max(sizes)), sizes.index(min(sizes)), len(sizes) - 1}
        found += [here[i] for i in sorted(chosen)]
    return found
