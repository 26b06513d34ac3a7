"""Turns what the ranks saw into lines that say agree, or differ, and why."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from mini_impls.compare.judge import (
    NONE,
    AllowedDifference,
    excuse_of,
    explained_by_events,
    line,
)
from mini_impls.compare.match import count_reordered
from mini_impls.compare.overlap import overlap
from mini_impls.compare.rank_worker import SIDES, RankResult, largest
from mini_impls.compare.sides import Comparison, Tolerance
from mini_impls.compare.tables import Known, Tables, sides_of
from mini_impls.compare.wire import HEADER_BYTES
from readerkit.content.vocabulary import SideName
from readerkit.evidence.record import (
    PARAMETERS,
    Event,
    Held,
    PipelineRecord,
    RankEvents,
    Total,
    Verdict,
    Wire,
    distance_line,
)


def verdicts(
    comparison: Comparison,
    results: Sequence[RankResult],
    tables: Tables,
    one_process: Sequence[float],
    known: Known,
    sizes: Mapping[str, int],
    backend: str,
) -> tuple[Verdict, ...]:
    """Return every line; ``known`` and ``sizes`` say what may differ, and how much."""
    wrong = excuse_of(known, "values", sizes)
    return (
        *_values(comparison, results, one_process, wrong, backend),
        *_events(tables.events, known, sizes),
        *overlap(tables.events, known, sizes),
        *_totals(tables.totals, tables.events),
        *_wires(tables.wire, results),
        *_held(tables.held),
        *_memory(tables, known, sizes),
        *_random(results, comparison.reseeds_gpu if backend == "nccl" else ""),
        *_bubble(tables.pipeline),
    )


def _values(
    comparison: Comparison,
    results: Sequence[RankResult],
    one_process: Sequence[float],
    wrong: AllowedDifference,
    backend: str,
) -> Iterator[Verdict]:
    tolerance = comparison.tolerance_at(len(results), backend)
    if any(r.mini.losses or r.upstream.losses for r in results):
        yield from _losses(comparison, results, one_process, wrong, tolerance)
    for what in results[0].distances:
        far = [r.distances[what] for r in results]
        exact = what == PARAMETERS[0]
        yield line(
            distance_line(what),
            None,
            largest(d.mini for d in far),
            largest(d.upstream for d in far),
            0.0 if exact else tolerance.value,
            "built from the same weights" if exact else tolerance.reason,
            difference=largest(d.difference for d in far),
            excuse=NONE if exact else wrong,
        )


def _losses(
    comparison: Comparison,
    results: Sequence[RankResult],
    one_process: Sequence[float],
    wrong: AllowedDifference,
    tolerance: Tolerance,
) -> Iterator[Verdict]:
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
        difference=largest(apart),
        excuse=wrong,
    )
    for name, losses in (("mini", mini), ("upstream", upstream)):
        yield line(
            f"loss of {name} (left) and of one process (right); largest difference",
            None,
            losses[-1],
            one_process[-1],
            comparison.one_process_tolerance.value,
            comparison.one_process_tolerance.reason,
            difference=largest(
                abs(a - b) for a, b in zip(losses, one_process, strict=True)
            ),
            excuse=wrong if name == "upstream" else NONE,
        )


def mean(values: Sequence[float]) -> float:
    """Return the mean."""
    return sum(values) / len(values)


def _events(
    events: Sequence[RankEvents], known: Known, sizes: Mapping[str, int]
) -> Iterator[Verdict]:
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
            excuse=excuse_of(known, "order", {**sizes, "rank": rank.rank}),
        )


def _totals(rows: Sequence[Total], events: Sequence[RankEvents]) -> Iterator[Verdict]:
    by_key = {(row.rank, row.op, row.side): row for row in rows}
    carrying = [row for row in rows if row.payload_bytes or row.formula]
    for rank, op in dict.fromkeys((row.rank, row.op) for row in carrying):
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
            excuse=explained_by_events(events[rank], _payload_of(op)),
        )
        for side, row in both.items():
            if row is None or (row.formula and row.formula_bytes is None):
                continue  # nothing was sent, or nobody can say how much it should be
            yield line(
                f"payload bytes of {op}, {side} (left) and formula",
                rank,
                row.payload_bytes,
                row.formula_bytes or 0,
                0,
                row.formula or f"no {op} is foreseen",
            )


def _payload_of(op: str) -> Callable[[Event], int]:
    return lambda event: event.payload_bytes if event.op == op else 0


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


def _memory(
    tables: Tables, known: Known, sizes: Mapping[str, int]
) -> Iterator[Verdict]:
    """Yield whether the mini needs more than upstream, and leaves more behind."""
    other = {(h.rank, h.side): h.bytes for h in tables.held if h.category == "other"}
    most = {(peak.rank, peak.side): peak.bytes for peak in tables.peaks}
    for what, sizes_of, excused in (
        ("most bytes alive in a step", most, True),
        ("other bytes that steps leave behind", other, False),
    ):
        for rank in dict.fromkeys(rank for rank, _ in sizes_of):
            mini, upstream = sizes_of[rank, "mini"], sizes_of[rank, "upstream"]
            yield line(
                what,
                rank,
                mini,
                upstream,
                0,
                "no more in the mini than upstream",
                difference=max(0, mini - upstream),
                excuse=excuse_of(known, "memory", {**sizes, "rank": rank})
                if excused
                else NONE,
            )


def _random(results: Sequence[RankResult], why: str) -> Iterator[Verdict]:
    excuse = AllowedDifference(why, at_most=math.inf)
    for rank, result in enumerate(results):
        yield line(
            "torch's random numbers: a checksum of where the last step left them",
            rank,
            result.mini.random,
            result.upstream.random,
            0,
            "both begin alike and draw the same",
            excuse=excuse,
        )


def _bubble(found: PipelineRecord | None) -> Iterator[Verdict]:
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
