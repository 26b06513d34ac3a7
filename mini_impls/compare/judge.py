"""Turns what the ranks saw into lines that say agree or differ, and into tables."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mini_impls.compare.match import align, count_reordered
from mini_impls.compare.sides import Comparison
from mini_impls.compare.watch import SIDES, Distance, RankResult, SideResult
from mini_impls.schedules import Step, get_bubble, get_timeline
from readerkit.records import (
    Category,
    Event,
    Held,
    Outcome,
    Peak,
    Pipeline,
    RankEvents,
    SideName,
    Times,
    Total,
    Verdict,
    Wire,
)

HEADER_BYTES = 1024
"""What gloo may add to one call for each other rank: 48 bytes a message."""


def sides_of(result: RankResult) -> tuple[tuple[SideName, SideResult], ...]:
    """Return both sides with their names."""
    return ("mini", result.mini), ("upstream", result.upstream)


# --- 1. tables ---


def rank_events(
    comparison: Comparison, results: Sequence[RankResult]
) -> tuple[RankEvents, ...]:
    """Return the aligned events of every rank."""
    return tuple(
        RankEvents(
            rank,
            result.mini.events,
            result.upstream.events,
            align(result.mini.events, result.upstream.events, comparison.explanations),
            result.mini.gradients,
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
                sent = [ring_bytes(e, rank, world_size) for e in events]
                rows.append(
                    Total(
                        rank=rank,
                        side=name,
                        op=op,
                        calls=len(events),
                        payload_bytes=sum(e.payload_bytes for e in events),
                        formula_bytes=formula.bytes if formula else None,
                        formula=formula.text if formula else "",
                        algorithm_bytes=sum(sent),
                    )
                )
    return tuple(rows)


def ring_bytes(event: Event, rank: int, world_size: int) -> float:
    """Return what a rank sends for an event by the textbook: rings, one way each."""
    share = (world_size - 1) / world_size
    match event.op:
        case "all_reduce":
            return 2 * share * event.payload_bytes
        case "all_gather" | "reduce_scatter" | "all_to_all":
            return share * event.payload_bytes
        case "broadcast":  # down a chain: all but the last rank send it once
            last = (event.peer or 0) + world_size - 1
            return 0.0 if rank == last % world_size else float(event.payload_bytes)
        case "reduce":  # up a chain: all but the root send it once
            return 0.0 if rank == event.peer else float(event.payload_bytes)
        case "send":
            return float(event.payload_bytes)
    return 0.0


def gloo_bytes(event: Event, rank: int, world_size: int) -> float | None:
    """Return what a rank sends with gloo; None where this is not written down.

    Gloo's reduce-scatter is an all-reduce inside; its broadcast is a binomial tree.
    """
    match event.op:
        case "reduce_scatter":
            return ring_bytes(replace(event, op="all_reduce"), rank, world_size)
        case "broadcast":
            virtual = (rank - (event.peer or 0)) % world_size
            sends = sum(
                1
                for i in range((world_size - 1).bit_length())
                if virtual < 1 << i and virtual + (1 << i) < world_size
            )
            return float(sends * event.payload_bytes)
        case "all_reduce" | "all_gather" | "send" | "recv":
            return ring_bytes(event, rank, world_size)
    return None


def wires(results: Sequence[RankResult], backend: str) -> tuple[Wire, ...]:
    """Return measured bytes beside what gloo's algorithms send."""
    rows = []
    for rank, result in enumerate(results):
        for name, side in sides_of(result):
            expected = [gloo_bytes(e, rank, len(results)) for e in side.events]
            if side.wire_bytes is None or None in expected or backend != "gloo":
                continue
            parts = Counter(e.op for e in side.events)
            text = " + ".join(f"{n} {op}" for op, n in sorted(parts.items()))
            total = sum(n for n in expected if n is not None)
            rows.append(Wire(rank, name, side.wire_bytes, total, text or "nothing"))
    return tuple(rows)


def held(results: Sequence[RankResult]) -> tuple[Held, ...]:
    """Return the bytes kept between steps, beside the formula."""
    categories: tuple[Category, ...] = ("parameters", "gradients", "optimizer state")
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


def pipeline(results: Sequence[RankResult]) -> Pipeline | None:
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
        bubbles[name] = float(get_bubble(get_timeline(orders), world_size)[0])
    return Pipeline(
        schedule=schedule.name,
        stages=world_size * schedule.chunks,
        microbatches=schedule.microbatches,
        chunks=schedule.chunks,
        bubble=bubbles,
        formula_bubble=(world_size - 1) / (schedule.chunks * schedule.microbatches),
        formula="(p - 1) / (v m)",
        bars=tuple(
            replace(bar, start_s=bar.start_s - start, end_s=bar.end_s - start)
            for bar in bars
        ),
        illustrative=world_size > len(os.sched_getaffinity(0)),
    )


# --- 2. lines that say agree or differ ---


def verdicts(
    comparison: Comparison,
    results: Sequence[RankResult],
    events: Sequence[RankEvents],
    wire_rows: Sequence[Wire],
    one_process: Sequence[float],
) -> tuple[Verdict, ...]:
    """Return every line."""
    return (
        *_values(comparison, results, one_process),
        *_events(comparison, events),
        *_totals(comparison, totals(results)),
        *_wires(wire_rows, results),
        *_held(held(results)),
        *_bubble(pipeline(results)),
    )


def line(
    what: str,
    rank: int | None,
    mini: float,
    upstream: float,
    tolerance: float,
    reason: str,
    *,
    difference: float | None = None,
    explained: str = "",
) -> Verdict:
    """Return a line; `explained` is why they may be further apart than `tolerance`."""
    if difference is None:
        difference = abs(mini - upstream)
    state: Outcome = "agree"
    # Written so that a difference that is not a number does not pass.
    if not difference <= tolerance:
        state, reason = ("explained", explained) if explained else ("differ", reason)
    return Verdict(what, rank, mini, upstream, difference, tolerance, state, reason)


def _values(
    comparison: Comparison, results: Sequence[RankResult], one_process: Sequence[float]
) -> Iterator[Verdict]:
    tolerance = comparison.tolerance(len(results))
    with_loss = [r for r in results if r.mini.losses or r.upstream.losses]
    mini, upstream = (
        [mean(losses) for losses in zip(*all_ranks, strict=True)]
        for all_ranks in (
            [r.mini.losses for r in with_loss],
            [r.upstream.losses for r in with_loss],
        )
    )
    apart = [
        abs(a - b)
        for r in with_loss
        for a, b in zip(r.mini.losses, r.upstream.losses, strict=True)
    ]
    yield line(
        f"loss of the last of {len(mini)} steps; largest difference of any step",
        None,
        mini[-1],
        upstream[-1],
        tolerance.value,
        tolerance.reason,
        difference=max(apart),
    )
    for name, losses in (("mini", mini), ("upstream", upstream)):
        yield line(
            f"loss of {name} (left) and of one process (right); largest difference",
            None,
            losses[-1],
            one_process[-1],
            comparison.one_process_tolerance.value,
            comparison.one_process_tolerance.reason,
            difference=max(
                abs(a - b) for a, b in zip(losses, one_process, strict=True)
            ),
        )
    for what in results[0].distances:
        far = [r.distances[what] for r in results]
        worst: Distance = max(far, key=lambda d: d.difference)
        exact = what == "parameters at the start"
        yield line(
            f"largest of {what}; largest difference",
            None,
            max(d.mini for d in far),
            max(d.upstream for d in far),
            0.0 if exact else tolerance.value,
            "built from the same weights" if exact else tolerance.reason,
            difference=worst.difference,
        )


def mean(values: Sequence[float]) -> float:
    """Return the mean."""
    return sum(values) / len(values)


def _events(comparison: Comparison, events: Sequence[RankEvents]) -> Iterator[Verdict]:
    for rank in events:
        states = Counter(match.state for match in rank.matches)
        yield line(
            "events of a step; those without a match or a reason",
            rank.rank,
            len(rank.mini),
            len(rank.upstream),
            0,
            f"{states['matched']} equal, {states['explained']} explained",
            difference=states["flagged"],
        )
        moved = count_reordered(rank.matches)
        both = sum(m.mini is not None and m.upstream is not None for m in rank.matches)
        yield line(
            "matched events; those in another order",
            rank.rank,
            both,
            both,
            0,
            "issued in the same order",
            difference=moved,
            explained=comparison.explained_order,
        )


def _totals(comparison: Comparison, rows: Sequence[Total]) -> Iterator[Verdict]:
    by_key = {(row.rank, row.op, row.side): row for row in rows}
    for rank, op in dict.fromkeys((row.rank, row.op) for row in rows):
        both: Mapping[SideName, Total | None] = {
            side: by_key.get((rank, op, side)) for side in SIDES
        }
        sent = {s: row.payload_bytes if row else 0 for s, row in both.items()}
        yield line(
            f"payload bytes of {op}",
            rank,
            sent["mini"],
            sent["upstream"],
            0,
            "the same tensors, however they are cut into calls",
            explained=comparison.explained_totals.get(op, ""),
        )
        for side, row in both.items():
            if row is None:
                continue
            yield line(
                f"payload bytes of {op}, {side} (left) and formula",
                rank,
                row.payload_bytes,
                row.formula_bytes or 0,
                0,
                row.formula or f"no {op} is foreseen",
            )


def _wires(rows: Sequence[Wire], results: Sequence[RankResult]) -> Iterator[Verdict]:
    for row in rows:
        calls = len(dict(sides_of(results[row.rank]))[row.side].events)
        yield line(
            f"bytes on the wire, {row.side} measured (left) and due",
            row.rank,
            row.bytes,
            row.expected_bytes,
            HEADER_BYTES * calls * (len(results) - 1),
            f"gloo's headers, 48 B a message; {row.formula}",
        )


def _held(rows: Sequence[Held]) -> Iterator[Verdict]:
    for row in rows:
        if row.formula_bytes is not None:
            yield line(
                f"{row.category} kept, {row.side} (left) and formula",
                row.rank,
                row.bytes,
                row.formula_bytes,
                0,
                row.formula,
            )


def _bubble(found: Pipeline | None) -> Iterator[Verdict]:
    if found is None:
        return
    reason = "idle over busy time on unit costs, from the order in which steps ran"
    bubble = found.bubble
    yield line("bubble", None, bubble["mini"], bubble["upstream"], 0.0, reason)
    for side in SIDES:
        yield line(
            f"bubble of {side} (left) and by {found.formula}",
            None,
            bubble[side],
            found.formula_bubble,
            1e-12,
            reason,
        )
