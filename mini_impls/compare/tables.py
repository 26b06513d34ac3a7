"""Turns what the ranks saw into the tables of a record."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from msgspec.structs import replace

from mini_impls.compare.match import align, excuses
from mini_impls.compare.rank_worker import SIDES, RankResult, SideResult
from mini_impls.compare.wire import INSIDE, gloo_bytes, ring_bytes
from mini_impls.schedules import Step
from mini_impls.timeline import get_bubble, get_timeline
from mini_impls.zero_bubble_plan import Block, get_block_timeline, get_split_bubble
from readerkit.content.mirrors import Difference
from readerkit.content.vocabulary import Category, SideName
from readerkit.evidence.record import (
    Held,
    Peak,
    PipelineRecord,
    RankEvents,
    TimelineBar,
    Times,
    Total,
    Wire,
)

Known = Sequence[tuple[str, Difference]]
"""How the two sides may differ, each with the mirror that says so."""


def sides_of(result: RankResult) -> tuple[tuple[SideName, SideResult], ...]:
    """Return both sides with their names."""
    return ("mini", result.mini), ("upstream", result.upstream)


@dataclass(frozen=True, slots=True)
class Tables:
    """Everything of a record that is counted or measured, but for the lines."""

    events: tuple[RankEvents, ...]
    totals: tuple[Total, ...]
    wire: tuple[Wire, ...]
    held: tuple[Held, ...]
    peaks: tuple[Peak, ...]
    times: tuple[Times, ...]
    pipeline: PipelineRecord | None


def make_tables(
    results: Sequence[RankResult],
    backend: str,
    known: Known,
    sizes: Mapping[str, int],
) -> Tables:
    """Return all tables."""
    return Tables(
        events=rank_events(results, known, sizes),
        totals=totals(results),
        wire=wires(results, backend),
        held=held(results),
        peaks=peaks(results),
        times=times(results),
        pipeline=pipeline(results),
    )


def rank_events(
    results: Sequence[RankResult], known: Known, sizes: Mapping[str, int]
) -> tuple[RankEvents, ...]:
    """Return the aligned events of every rank."""
    return tuple(
        RankEvents(
            rank,
            result.mini.events,
            result.upstream.events,
            align(
                result.mini.events,
                result.upstream.events,
                excuses(known, {**sizes, "rank": rank}),
            ),
            result.mini.gradients,
            result.stacks,
        )
        for rank, result in enumerate(results)
    )


def totals(results: Sequence[RankResult]) -> tuple[Total, ...]:
    """Return the calls and bytes of every operation, beside the formula."""
    world_size = len(results)
    rows = []
    for rank, result in enumerate(results):
        for name, side in sides_of(result):
            formulas = result.formulas.payload[name]
            for op in dict.fromkeys([*formulas, *(e.op for e in side.events)]):
                events = [event for event in side.events if event.op == op]
                formula = formulas.get(op)
                unsized = result.formulas.unsized if name == "upstream" else {}
                text = formula.text if formula else unsized.get(op, "")
                sent = [ring_bytes(e, rank, world_size) for e in events]
                rows.append(
                    Total(
                        rank=rank,
                        side=name,
                        op=op,
                        calls=len(events),
                        payload_bytes=sum(e.payload_bytes for e in events),
                        formula_bytes=formula.bytes if formula else None,
                        formula=text,
                        algorithm_bytes=sum(sent),
                    )
                )
    return tuple(rows)


def wires(results: Sequence[RankResult], backend: str) -> tuple[Wire, ...]:
    """Return measured bytes beside what gloo's algorithms send."""
    rows = []
    for rank, result in enumerate(results):
        for name, side in sides_of(result):
            expected = [gloo_bytes(e, rank, len(results)) for e in side.events]
            if side.wire_bytes is None or None in expected or backend != "gloo":
                continue
            parts = Counter(e.op for e in side.events)
            text = " + ".join(
                f"{n} {op}{INSIDE.get(op, '')}" for op, n in sorted(parts.items())
            )
            total = sum(n for n in expected if n is not None)
            rows.append(Wire(rank, name, side.wire_bytes, total, text or "nothing"))
    return tuple(rows)


def held(results: Sequence[RankResult]) -> tuple[Held, ...]:
    """Return the bytes kept between steps, beside the formula."""
    categories: tuple[Category, ...] = get_args(Category)
    rows = []
    for rank, result in enumerate(results):
        for name, side in sides_of(result):
            formulas = result.formulas.held[name]
            for category in categories:
                formula = formulas.get(category)
                rows.append(
                    Held(
                        rank,
                        name,
                        category,
                        side.held[category],
                        formula.bytes if formula else None,
                        formula.text if formula else "",
                    )
                )
    return tuple(rows)


def peaks(results: Sequence[RankResult]) -> tuple[Peak, ...]:
    """Return the worst moment of each side on each rank."""
    return tuple(
        Peak(rank, name, side.peak_phase, side.peak, side.peak_categories)
        for rank, result in enumerate(results)
        for name, side in sides_of(result)
    )


def times(results: Sequence[RankResult]) -> tuple[Times, ...]:
    """Return the seconds of every measured step."""
    return tuple(
        Times(rank, result.mini.times, result.upstream.times)
        for rank, result in enumerate(results)
    )


def pipeline(results: Sequence[RankResult]) -> PipelineRecord | None:
    """Return what both sides of a pipeline did, its bubble counted on unit costs."""
    schedule = results[0].schedule
    if schedule is None:
        return None
    world_size = len(results)
    bars = [bar for result in results for bar in result.bars]
    start = min(bar.start_s for bar in bars)
    bubbles: dict[SideName, float] = {}
    for name in SIDES:
        orders = [
            [Step(bar.kind, bar.microbatch, bar.stage) for bar in done]
            for done in (
                [b for b in bars if (b.side, b.rank) == (name, rank)]
                for rank in range(world_size)
            )
        ]
        timeline = get_timeline(orders)
        if schedule.splits_backward:
            blocks = [_blocks(order, _whole(bars, name)) for order in orders]
            timeline = get_block_timeline(blocks, {"F": 1, "B": 1, "W": 1})
        bubbles[name] = float(get_bubble(timeline, world_size)[0])
    formula = (world_size - 1) / (schedule.chunks * schedule.microbatches)
    closed = formula, "(p - 1) / (v m)"
    if schedule.splits_backward:
        bubble, text = get_split_bubble(
            schedule.name, world_size, schedule.microbatches
        )
        closed = float(bubble), text
    return PipelineRecord(
        schedule=schedule.name,
        stages=world_size * schedule.chunks,
        microbatches=schedule.microbatches,
        chunks=schedule.chunks,
        bubble=bubbles,
        formula_bubble=closed[0],
        formula=closed[1],
        bars=tuple(
            replace(bar, start_s=bar.start_s - start, end_s=bar.end_s - start)
            for bar in bars
        ),
        illustrative=world_size > len(os.sched_getaffinity(0)),
    )


def _whole(bars: Sequence[TimelineBar], side: SideName) -> set[Step]:
    """Return the weights' halves that were made with their inputs' half."""
    return {
        Step(bar.kind, bar.microbatch, bar.stage)
        for bar in bars
        if (bar.side, bar.kind) == (side, "W") and bar.start_s == bar.end_s
    }


def _blocks(order: Sequence[Step], whole: set[Step]) -> list[Block]:
    """Return the steps of a rank with both halves of a whole backward in one block.

    A forward right before it is of that block too, as DualPipe has it.
    """
    blocks: list[Block] = []
    for step in order:
        block: Block = (step,)
        if step in whole:
            block = *blocks.pop(), step
            if blocks and [each.kind for each in blocks[-1]] == ["F"]:
                block = *blocks.pop(), *block
        blocks.append(block)
    return blocks
