"""Schedules that are run here: ZB-H2, interleaved ZB-H1, ZB-V and DualPipe.

The orders are the mini's (``mini_impls.zero_bubble_orders``): a rank's work is a list
of blocks, one step each or, in DualPipe, a forward and a backward of the two directions
at once. A block starts when its rank is free and what its steps need is there: times
and bubble follow from the order alone.

Sources: Qi et al. 2401.10241, sections 2 and 6; DeepSeek-V3 2412.19437, section 3.2.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from mini_impls.zero_bubble_orders import ORDERS as ORDERS
from mini_impls.zero_bubble_orders import Kind, RankStep
from readerkit.errors import EstimateError
from readerkit.estimate.quantity import Number, divide

if TYPE_CHECKING:
    from mini_impls.schedules import Step

Times = dict[tuple[int, RankStep], tuple[int, int]]
"""By rank and step, when it starts and ends."""


# --- orders ---------------------------------------------------------------------------


def zb_interleaved(rank: int, p: int, m: int, v: int) -> Iterator[Step]:
    """ZB-H1 over v chunks a rank: each holds v p chunks, as the first rank of 1F1B.

    Stages and groups of p microbatches as in interleaved 1F1B, but with half of its
    warm-up. Of one chunk it is ZB-H1.
    """
    from mini_impls.schedules import Step

    total = m * v

    def step(kind: Kind, i: int) -> Step:
        turn, at = divmod(i, p * v)
        chunk, i = divmod(at, p)
        if kind != "F":
            chunk = v - 1 - chunk
        return Step(kind, turn * p + i, chunk * p + rank)

    ahead = min((v - 1) * p + p - rank - 1, total)
    for i in range(ahead):
        yield step("F", i)
    for i in range(total):
        if i + ahead < total:
            yield step("F", i + ahead)
        yield step("B", i)
        if i >= rank:
            yield step("W", i - rank)
    for i in range(max(0, total - rank), total):
        yield step("W", i)


def check_sizes(schedule: str, p: int, m: int) -> None:
    """Raise where a schedule cannot have these ranks and microbatches.

    Raises:
        EstimateError: too few microbatches to fill it, or an odd number.
    """
    least = 2 * p if schedule == "dualpipe" else 2 * p - 1
    if m < least:
        formula = "2 p" if schedule == "dualpipe" else "2 p - 1"
        raise EstimateError(
            f"microbatches: got {m}, expected at least {formula} = {least} for "
            f"{schedule}: its warm-up holds as many, and with fewer the pipeline idles"
        )
    if schedule == "dualpipe" and (p % 2 or m % 2):
        name, got = ("stages", p) if p % 2 else ("microbatches", m)
        raise EstimateError(f"{name}: got {got}, expected an even number for dualpipe")


# --- running one ----------------------------------------------------------------------


def run(schedule: str, p: int, m: int, costs: Sequence[int]) -> Times:
    """Return when each step of every rank runs, as early as order and inputs allow."""
    todo = [deque(ORDERS[schedule](rank, p, m)) for rank in range(p)]
    free, times = [0] * p, Times()
    while any(todo):
        left = sum(map(len, todo))
        for rank, blocks in enumerate(todo):
            while blocks:
                ends = [
                    times.get(each)
                    for step in blocks[0]
                    for each in _inputs(schedule, p, rank, step)
                ]
                if not all(ends):
                    break
                block = blocks.popleft()
                start = max(free[rank], *(span[1] for span in ends if span), 0)
                free[rank] = start + sum(_cost(each, costs) for each in block)
                for step in block:
                    times[rank, step._replace(whole=False)] = start, free[rank]
        if sum(map(len, todo)) == left:
            raise EstimateError(f"{schedule}: no rank can go on: p {p}, m {m}")
    return times


def _cost(step: RankStep, costs: Sequence[int]) -> int:
    forward, backward, weight = costs
    each = {"F": forward, "B": backward + weight * step.whole, "W": weight}
    return each[step.kind]


def _inputs(
    schedule: str, p: int, rank: int, step: RankStep
) -> Iterator[tuple[int, RankStep]]:
    """Return the steps of which rank a step waits for."""
    kind, i, chunk, _ = step
    if kind == "W":
        yield rank, RankStep("B", i, chunk)
        return
    down = chunk == 0
    ahead = rank + (1 if down else -1) * (-1 if kind == "F" else 1)
    if kind == "B":
        yield rank, RankStep("F", i, chunk)
    if 0 <= ahead < p:
        yield ahead, RankStep(kind, i, chunk)
    elif schedule == "zb-v" and (kind == "F") != down:
        yield rank, RankStep(kind, i, 1 - chunk)


def idle(times: Times, p: int) -> int:
    """Return the most that a rank idles between its first step and its last."""
    spans: list[set[tuple[int, int]]] = [set() for _ in range(p)]
    for (rank, _), span in times.items():
        spans[rank].add(span)
    return max(
        max(end for _, end in own)
        - min(start for start, _ in own)
        - sum(end - start for start, end in own)
        for own in spans
    )


def held(
    schedule: str, rank: int, p: int, m: int, *, chunk: int | None = None
) -> Number:
    """Return the microbatches whose activations a rank holds at its peak.

    Of all its chunks, in passes through all of them; or of one alone.
    """
    change = [0]
    for block in ORDERS[schedule](rank, int(p), int(m)):
        for step in block:
            gone = step.kind == "W" or step.whole
            if chunk in (None, step.chunk):
                change.append(1 if step.kind == "F" else -int(gone))
    most = max(accumulate(change))
    return divide(most, 2) if schedule == "zb-v" and chunk is None else most


def lay_out(
    schedule: str, p: int, m: int, costs: Sequence[int]
) -> list[tuple[int, int, int, Kind, int, int]]:
    """Return rank, start, end, kind, microbatch and chunk of each step, rank by rank.

    What overlaps is drawn one after the other, in the time that both take.
    """
    shown = []
    until: dict[tuple[int, int], int] = {}
    steps = run(schedule, p, m, costs).items()
    for (rank, step), (start, end) in sorted(
        steps, key=lambda each: (each[0][0], each[1], each[0][1].kind != "F")
    ):
        begin = until.get((rank, start), start)
        stop = begin + costs[0] if step.kind == "F" else end
        until[rank, start] = stop
        other = m // 2 if schedule == "dualpipe" and step.chunk else 0
        shown.append(
            (rank, begin, stop, step.kind, step.microbatch + other, step.chunk)
        )
    return shown
