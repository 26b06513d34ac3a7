"""Measures when a rank issues, waits and computes, once all else has been seen.

The steps are those that `Recorder` takes for a trace: nothing watches them but torch's
profiler. Which call is which event, and which wait whose, the traced step's order says.
"""

from bisect import bisect
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mini_impls.compare.ops import OPS, PRODUCTS
from mini_impls.compare.rank_worker import RankResult, watch
from mini_impls.compare.sides import SIDES
from mini_impls.launch import Rank
from mini_impls.recorder import WAIT
from mini_impls.run_events import Event as Noted
from mini_impls.run_metrics import RecordedRank, part_of, span_of
from mini_impls.run_metrics import Span as Noticed
from mini_impls.run_trace import drawn
from readerkit.content.vocabulary import SideName
from readerkit.evidence.clock import Span, StepClock, joined
from readerkit.evidence.record import Event
from readerkit.system.garbage import uncollected

FINEST = 500
"""What is apart by less than this part of a step is noted as one."""


@dataclass(frozen=True, slots=True)
class Clocked:
    """What a rank saw, and when."""

    seen: RankResult
    steps: Mapping[SideName, list[StepClock | None]]
    """Of each side, all but the first, which warms up."""


def watch_and_clock(
    rank: Rank,
    mini: str,
    upstream: str,
    steps: int,
    megatron: Path | None,
    is_traced: bool = False,
    is_clocked: bool = False,
    locked: Collection[tuple[str, str]] | None = None,
) -> Clocked:
    """Run one comparison on this rank; where asked, a few more steps by the clock."""
    is_recorded = is_traced or is_clocked
    seen = watch(rank, mini, upstream, steps, megatron, is_recorded, locked)
    if seen.trace is None:
        return Clocked(seen, {side: [] for side in SIDES})
    events = {"mini": seen.mini.events, "upstream": seen.upstream.events}
    with uncollected():
        recorded = RecordedRank(seen.trace)
        clocks = {side: clock(recorded, side, events[side]) for side in SIDES}
        trace = drawn(seen.trace) if is_traced else None
    return Clocked(replace(seen, trace=trace), clocks)


def fastest(ranks: Sequence[Clocked]) -> tuple[StepClock, ...]:
    """Return, of all ranks, the step of each side whose slowest rank was fastest."""
    found: list[StepClock] = []
    for side in SIDES:
        steps = zip(*(each.steps[side] for each in ranks), strict=True)
        whole = [[rank for rank in step if rank] for step in steps if all(step)]
        if whole:
            found += min(whole, key=lambda step: max(each.step_us for each in step))
    return tuple(found)


def clock(
    recorded: RecordedRank, side: SideName, events: Sequence[Event]
) -> list[StepClock | None]:
    """Return the times of each recorded step of a side, but the first.

    None for one that makes other calls than the traced step: data may decide them.
    """
    noted = [each for each in recorded.trace.events if each.get("ph") == "X"]
    threads = {each["tid"] for each in noted if each["name"] in recorded.steps}
    main = [each for each in noted if each["tid"] in threads]
    called = [each for each in noted if _call(each) in OPS]  # in callbacks, too
    spans = [span for name, span in recorded.steps.items() if part_of(name) == side]
    found: list[StepClock | None] = []
    for begin, end in spans[1:]:
        here = [each for each in main if begin <= each["ts"] < end]
        issues = outermost(each for each in called if begin <= each["ts"] < end)
        if [OPS[_call(each)] for each in issues] != [event.op for event in events]:
            found.append(None)
            continue
        starts = [each["ts"] for each in issues]
        waits = outermost(each for each in here if _op(each) in (WAIT, "wait_tensor"))
        products = (each for each in recorded.operations if _op(each) in PRODUCTS)
        step = _Times(begin, end)
        found.append(
            StepClock(
                rank=recorded.trace.rank,
                side=side,
                step_us=step.length,
                issues=step.spans(map(span_of, issues)),
                waits=tuple(
                    span and step.within(span)
                    for span in told_apart(events, starts, [*map(span_of, waits)])
                ),
                moving=step.joined(each.span for each in recorded.transfers),
                computing=step.joined(recorded.computing),
                products=step.spans(map(span_of, outermost(products))),
            )
        )
    return found


def told_apart(
    events: Sequence[Event], starts: Sequence[float], waits: Sequence[Noticed]
) -> list[Noticed | None]:
    """Return the wait of each event that the traced step saw waited for.

    `starts` are the issues. Between two of them the traced step has so many waits, in
    an order; where there are more or less now, none of them is told from another.
    """
    order = sorted(
        [
            *((event.issue, False, index) for index, event in enumerate(events)),
            *((e.wait, True, index) for index, e in enumerate(events) if e.wait),
        ]
    )
    due: list[list[int]] = [[]]
    for _, is_wait, index in order:
        if is_wait:
            due[-1].append(index)
        else:
            due.append([])
    seen: list[list[Noticed]] = [[] for _ in due]
    for wait in waits:
        seen[bisect(starts, wait[0])].append(wait)
    found: list[Noticed | None] = [None] * len(events)
    for indices, spans in zip(due, seen, strict=True):
        if len(indices) == len(spans):
            for index, span in zip(indices, spans, strict=True):
                found[index] = span
    return found


def outermost(noted: Iterable[Noted]) -> list[Noted]:
    """Return what is inside of nothing else that is asked for, in order."""
    found: list[Noted] = []
    for each in sorted(noted, key=lambda each: (each["ts"], -each["dur"])):
        if not found or span_of(each)[1] > span_of(found[-1])[1]:
            found.append(each)
    return found


@dataclass(frozen=True, slots=True)
class _Times:
    begin: float
    end: float

    @property
    def length(self) -> int:
        return round(self.end - self.begin)

    def within(self, span: Noticed) -> Span:
        """Return a span from the step's start, as far as it is of the step."""
        first, last = (min(max(at, self.begin), self.end) for at in span)
        return round(first - self.begin), round(last - self.begin)

    def spans(self, spans: Iterable[Noticed]) -> tuple[Span, ...]:
        here = (span for span in spans if span[1] > self.begin and span[0] < self.end)
        return tuple(map(self.within, here))

    def joined(self, spans: Iterable[Noticed]) -> tuple[Span, ...]:
        return tuple(joined(self.spans(spans), self.length // FINEST))


def _op(noted: Noted) -> str:
    name: str = noted["name"]
    return name.rpartition(":")[2]


def _call(noted: Noted) -> str:
    """Return the name below `c10d` or `_c10d_functional`; else nothing."""
    space, _, name = noted["name"].partition("::")
    return name if space in ("c10d", "_c10d_functional") else ""
