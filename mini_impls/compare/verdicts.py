"""Turns what the ranks saw into lines that say agree, or differ, and why."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mini_impls.compare.match import count_reordered
from mini_impls.compare.sides import Comparison
from mini_impls.compare.tables import Known, Tables, sides_of
from mini_impls.compare.watch import SIDES, RankResult, largest
from mini_impls.compare.wire import HEADER_BYTES
from readerkit.content.vocabulary import DifferenceKind, SideName
from readerkit.records import Held, Outcome, Pipeline, RankEvents, Total, Verdict, Wire


def verdicts(
    comparison: Comparison,
    results: Sequence[RankResult],
    tables: Tables,
    one_process: Sequence[float],
    known: Known,
    sizes: Mapping[str, int],
) -> tuple[Verdict, ...]:
    """Return every line; ``known`` and ``sizes`` say what may differ, and how much."""
    wrong = _excuse(known, "values", sizes)
    return (
        *_values(comparison, results, one_process, wrong),
        *_events(tables.events, known, sizes),
        *_totals(tables.totals, tables.events),
        *_wires(tables.wire, results),
        *_held(tables.held),
        *_bubble(tables.pipeline),
    )


@dataclass(frozen=True, slots=True)
class Excuse:
    """Why a line may differ, and by how much."""

    why: str = ""
    mirror: str = ""
    at_most: float = 0.0


NONE = Excuse()


def _excuse(known: Known, what: DifferenceKind, sizes: Mapping[str, int]) -> Excuse:
    """Return what mirrors say of differences that have no event."""
    for mirror, difference in known:
        if difference.what == what:
            at_most = float(difference.at_most.evaluate(sizes))
            return Excuse(difference.why, mirror, at_most)
    return NONE


def line(
    what: str,
    rank: int | None,
    mini: float,
    upstream: float,
    tolerance: float,
    reason: str,
    *,
    difference: float | None = None,
    excuse: Excuse = NONE,
) -> Verdict:
    """Return a line; `excuse` is why they may be further apart than `tolerance`."""
    if difference is None:
        difference = abs(mini - upstream)
    state: Outcome = "agree"
    mirror = ""
    # Written so that a difference that is not a number does not pass.
    if not difference <= tolerance:
        state = "differ"
        # What may be anything may be no number too.
        covered = difference <= excuse.at_most or excuse.at_most == math.inf
        if excuse.why and covered:
            state, reason, mirror = "explained", excuse.why, excuse.mirror
    return Verdict(
        what, rank, mini, upstream, difference, tolerance, state, reason, mirror
    )


def _values(
    comparison: Comparison,
    results: Sequence[RankResult],
    one_process: Sequence[float],
    wrong: Excuse,
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
    for what in results[0].distances:
        far = [r.distances[what] for r in results]
        exact = what == "parameters at the start"
        yield line(
            f"largest of {what}; largest difference",
            None,
            largest(d.mini for d in far),
            largest(d.upstream for d in far),
            0.0 if exact else tolerance.value,
            "built from the same weights" if exact else tolerance.reason,
            difference=largest(d.difference for d in far),
            excuse=NONE if exact else wrong,
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
            excuse=_excuse(known, "order", {**sizes, "rank": rank.rank}),
        )


def _totals(rows: Sequence[Total], events: Sequence[RankEvents]) -> Iterator[Verdict]:
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
            excuse=_explained_bytes(events[rank], op),
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


def _explained_bytes(rank: RankEvents, op: str) -> Excuse:
    """Return how far the bytes of an operation are apart by explained events alone."""
    apart, whys, mirrors = 0, [], []
    for match in rank.matches:
        ours = rank.mini[match.mini] if match.mini is not None else None
        theirs = rank.upstream[match.upstream] if match.upstream is not None else None
        sent = [
            event.payload_bytes if event and event.op == op else 0
            for event in (ours, theirs)
        ]
        if match.state == "explained" and sent[0] != sent[1]:
            apart += sent[0] - sent[1]
            whys.append(match.why)
            mirrors.append(match.mirror)
    return Excuse(
        "; ".join(dict.fromkeys(whys)), ", ".join(dict.fromkeys(mirrors)), abs(apart)
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
