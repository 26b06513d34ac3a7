"""Where the time of a step goes on each rank, from what the rank recorded.

    computing | mm  softmax  mm |       | mm ...
    transfers |     all-reduce 117 kB   |
                    hidden      exposed

Leaves out:
- which transfer a product waits for: that is the order of the comparisons' records
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from mini_impls.recorder import (
    ALONE,
    LATER,
    STEP,
    WAIT,
    Expected,
    Predicted,
    RankTrace,
    Rates,
)
from mini_impls.run_events import Event
from mini_impls.run_memory import live_bytes
from readerkit.system.garbage import uncollected

Span = tuple[float, float]
"""Start and end, in microseconds."""

# --- 1. spans -------------------------------------------------------------------------


def union(spans: Iterable[Span]) -> list[Span]:
    """Return the same time in spans that do not touch, in order."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif end > start:
            merged.append((start, end))
    return merged


def without(ours: Iterable[Span], theirs: Iterable[Span]) -> list[Span]:
    """Return the time of ours that is in none of theirs."""
    left, rest, first = [], union(theirs), 0
    for start, end in union(ours):
        while first < len(rest) and rest[first][1] <= start:
            first += 1
        at = first
        while at < len(rest) and rest[at][0] < end:
            left.append((start, rest[at][0]))
            start = rest[at][1]
            at += 1
        left.append((start, end))
    return union(left)


def within(ours: Iterable[Span], theirs: Iterable[Span]) -> list[Span]:
    """Return the time of ours that is in theirs too."""
    mine = union(ours)
    return without(mine, without(mine, theirs))


def length(spans: Iterable[Span]) -> float:
    """Return how long spans are together; what overlaps counts once."""
    return sum(end - start for start, end in union(spans))


# --- 2. what one rank did -------------------------------------------------------------

_STEP_NAME = re.compile(rf"((?P<part>.+), )?{STEP} \d+")
_BACKENDS = ("gloo:", "nccl:", "ncclDev")
"""How the names of transfers begin: gloo's threads, NCCL's kernels."""
_OPERATIONS = {
    "reducescatter": "reduce-scatter",
    "allgather": "all-gather",
    "allreduce": "all-reduce",
    "alltoall": "all-to-all",
    "broadcast": "broadcast",
    "barrier": "barrier",
    "send": "send",
    "recv": "receive",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
}
"""What stands in the names of calls, without underscores: the longer one first."""
_ITEM_BYTES = {
    **dict.fromkeys(("double", "long int"), 8),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("c10::Half", "c10::BFloat16", "short int"), 2),
    **dict.fromkeys(("unsigned char", "signed char", "bool"), 1),
}


@dataclass(frozen=True, slots=True)
class TransferSpan:
    """Something sent or received, as long as it was under way."""

    operation: str
    span: Span
    tensor_bytes: int | None
    """Of the tensor that the backend was given first; None where it does not say."""


class RecordedRank:
    """The events of one rank, by what they are."""

    def __init__(self, trace: RankTrace) -> None:
        self.trace = trace
        spans = [event for event in trace.events if event.get("ph") == "X"]
        later = union(span_of(event) for event in spans if event["name"] == LATER)
        if later:
            spans = [event for event in spans if not within([span_of(event)], later)]
        starts = [event for event in spans if _STEP_NAME.fullmatch(event["name"])]
        self.steps = {event["name"]: span_of(event) for event in starts}
        # Callbacks of a communication hook may run, and call, on a thread of gloo's.
        calling = [e for e in spans if "c10d" in e["name"].partition("::")[0]]
        threads = {event["tid"] for event in (*starts, *calling)}
        main = [event for event in spans if event["tid"] in threads]
        self.waits = [span_of(event) for event in main if event["name"] == WAIT]
        self.alone = [span_of(event) for event in main if event["name"] == ALONE]
        kernels = [event for event in spans if event.get("cat") == "kernel"]
        # On a GPU a call only asks for a kernel, which sends later.
        self.transfers = [
            TransferSpan(
                _operation(event["name"]), span_of(event), _tensor_bytes(event)
            )
            for event in kernels or spans
            if event["name"].startswith(_BACKENDS)
        ]
        # A mode that watches calls makes each of them once more, inside the first.
        own = _outermost(calling)
        self.calls = [(_operation(event["name"]), span_of(event)) for event in own]
        self.operations = [
            *(e for e in kernels if not e["name"].startswith(_BACKENDS)),
            *(e for e in main if e["name"].startswith("aten::") and not kernels),
        ]
        inside = [span for _, span in self.calls] if not kernels else []
        # Copies on the way to the backend are the call's own, and no work of the model.
        self.computing = without(map(span_of, self.operations), inside)
        moving = union([*(t.span for t in self.transfers), *inside])
        self.hidden = within(moving, self.computing)
        self.exposed = without(moving, self.computing)
        self.late = without(self.waits, [*moving, *self.computing])
        self.live = live_bytes(trace.events)

    def peak_of(self, part: str, spans: Iterable[Span]) -> int | None:
        """Return the most that lived in a part; None where memory was not recorded."""
        if part in self.trace.counted:
            return max((size for _, size in self.trace.counted[part]), default=None)
        return max(map(self.peak_bytes, spans)) if self.live else None

    def peak_bytes(self, span: Span) -> int:
        """Return the most bytes of tensors that lived in a span.

        What a comparison with one process keeps is taken off.
        """
        at = [size for when, size in self.live if span[0] <= when <= span[1]]
        beside = sum(
            self._live_at(end) - self._live_at(start)
            for start, end in self.alone
            if end <= span[0]
        )
        return max([self._live_at(span[0]), *at]) - beside

    def _live_at(self, when: float) -> int:
        number = bisect_right(self.live, when, key=lambda each: each[0])
        return self.live[number - 1][1] if number else 0


def part_of(step: str) -> str:
    """Return the part that the name of a step tells; empty where there is one alone."""
    found = _STEP_NAME.fullmatch(step)
    return (found["part"] or "") if found else ""


def _outermost(events: Iterable[Event]) -> list[Event]:
    found: list[Event] = []
    for event in sorted(events, key=lambda each: (each["ts"], -each["dur"])):
        if not found or span_of(event)[1] > span_of(found[-1])[1]:
            found.append(event)
    return found


def span_of(event: Event) -> Span:
    """Return when an event of the profiler began and ended."""
    start = float(event["ts"])
    return start, start + float(event["dur"])


def _operation(name: str) -> str:
    bare = name.rpartition(":")[2].replace("_", "").lower()
    return next((says for part, says in _OPERATIONS.items() if part in bare), bare)


def _tensor_bytes(event: Event) -> int | None:
    args = event.get("args", {})
    types, sizes = args.get("Input type", []), args.get("Input Dims", [])
    if not types or types[0] not in _ITEM_BYTES:
        return None
    count: int = math.prod(sizes[0])
    return count * _ITEM_BYTES[types[0]]


# --- 3. where the time of a step goes -------------------------------------------------


@dataclass(frozen=True, slots=True)
class RankMetrics:
    """Means over the recorded steps of one rank but the first, which warms up."""

    rank: int
    steps: int
    step_s: float
    computing_s: float
    hidden_s: float
    """Transfers under way while the rank computes."""
    exposed_s: float
    """Transfers under way while it does not."""
    waiting_s: float
    """Python stands in a wait: part of the exposed, but for `late_s`, of the other."""
    sent_bytes: float | None
    """What the kernel counted; None where it does not (NCCL, other systems)."""
    calls: float
    tokens_per_s: float
    peak_bytes: int | None
    """Of tensors; None where memory was not recorded."""
    resident_bytes: int | None
    """Of the whole process, once these were taken; None where nobody asked."""
    as_all_reduces: float = 0.0
    """Reduce-scatters of which the backend makes all-reduces, as gloo does."""
    late_s: float = 0.0
    """Python stands in a wait, and nothing is under way or computed.

    A thread of the backend has not begun, or has ended and Python was not woken up yet:
    most where there are fewer cores than ranks have threads.
    """

    @property
    def other_s(self) -> float:
        """What is neither: Python, and what the profiler itself takes."""
        return self.step_s - self.computing_s - self.exposed_s


@dataclass(frozen=True, slots=True)
class RankSummary:
    """Where the time of one rank goes, and what the estimates say of it, by part."""

    rank: int
    parts: dict[str, RankMetrics]
    """None where no step was recorded."""
    expected: dict[str, Expected]
    product_flops_per_s: float
    """What a matrix product alone reached."""
    rates: Rates | None = None
    """None where nobody measured them."""
    predicted: dict[str, Predicted] = field(default_factory=dict)
    """Of the parts of which the estimates make something at these rates."""


@uncollected()
def summarize(trace: RankTrace) -> RankSummary:
    """Return where the time goes in each part."""
    return sum_up(RecordedRank(trace))


def sum_up(recorded: RecordedRank) -> RankSummary:
    """Return where the time goes in each part of what was read already."""
    trace = recorded.trace
    parts = dict.fromkeys(map(part_of, recorded.steps))
    found = {part: _metrics(recorded, part) for part in parts}
    return RankSummary(
        trace.rank,
        found,
        trace.expected,
        trace.product_flops_per_s,
        trace.rates,
        predict(found, trace.expected, trace.rates),
    )


def predict(
    parts: Mapping[str, RankMetrics],
    expected: Mapping[str, Expected],
    rates: Rates | None,
) -> dict[str, Predicted]:
    """Return what the estimates make of each part, with the calls that it makes."""
    if rates is None:
        return {}
    each = {
        part: expected[part].at(rates, of.calls)
        for part, of in parts.items()
        if part in expected
    }
    return {part: made for part, made in each.items() if made is not None}


def _metrics(recorded: RecordedRank, part: str) -> RankMetrics:
    names = [name for name in recorded.steps if part_of(name) == part]
    warm = names[1:] or names
    spans = [recorded.steps[name] for name in warm]
    by_step = recorded.trace.written_bytes
    written = [by_step[name] for name in warm if name in by_step]
    shown = {
        "step_s": spans,
        "computing_s": within(recorded.computing, spans),
        "hidden_s": within(recorded.hidden, spans),
        "exposed_s": within(recorded.exposed, spans),
        "waiting_s": within(recorded.waits, spans),
        "late_s": within(recorded.late, spans),
    }
    seconds = {name: length(each) / 1e6 / len(warm) for name, each in shown.items()}
    issued = _within_steps(recorded.calls, spans)
    moved = _within_steps([(t.operation, t.span) for t in recorded.transfers], spans)
    is_sent = "reduce-scatter" in moved
    return RankMetrics(
        rank=recorded.trace.rank,
        steps=len(warm),
        **seconds,
        sent_bytes=fmean(written) if written else None,
        calls=len(issued) / len(warm),
        tokens_per_s=recorded.trace.tokens / seconds["step_s"],
        peak_bytes=recorded.peak_of(part, spans),
        resident_bytes=None,
        as_all_reduces=0 if is_sent else issued.count("reduce-scatter") / len(warm),
    )


def _within_steps(named: Iterable[tuple[str, Span]], steps: list[Span]) -> list[str]:
    """Return the operations that begin in these steps."""
    return [
        operation
        for operation, (start, _) in named
        if any(begin <= start < end for begin, end in steps)
    ]
