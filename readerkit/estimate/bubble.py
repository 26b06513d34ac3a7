"""Pipeline bubbles by formula, and the same from a schedule that is run on paper.

The order of every schedule comes from ``mini_impls.schedules``; its idle time must be
that of the formula here, which a test holds for every size it tries.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from mini_impls.schedules import (
    Timeline,
    draw,
    get_bubble,
    get_orders,
    get_timeline,
)
from readerkit.errors import EstimateError
from readerkit.estimate.activations import in_flight
from readerkit.estimate.quantity import (
    MAX_RANKS,
    Estimate,
    Item,
    Number,
    check_amount,
    check_choice,
    check_count,
    divide,
)

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2")
SOURCES = {
    "gpipe": "Huang et al. 1811.06965, section 2.3",
    "1f1b": "Narayanan et al. 2104.04473, section 2.2.1",
    "interleaved": "Narayanan et al. 2104.04473, section 2.2.2",
    "zb-h1": "Qi et al. 2401.10241, section 2 and table 2",
    "zb-h2": "Qi et al. 2401.10241, section 2 and table 2",
}
MAX_DRAWN = 20_000
"""Cells of a grid that anyone would look at."""


def bubble_time(
    *,
    schedule: str = "1f1b",
    stages: int,
    microbatches: int,
    virtual_stages: int = 1,
    forward: Number = 1,
    backward: Number = 1,
    weight: Number = 1,
) -> Number:
    """Return the idle time of one rank in a step.

    ``forward`` and ``backward`` are one microbatch through one rank's layers. The
    zero-bubble schedules split the backward: theirs is the input's gradient alone, and
    ``weight`` the weights'.

    GPipe, 1F1B: (p - 1)(F + B); interleaved: that over v. ZB-H1: (p - 1)(F + B - W),
    from p microbatches on; with fewer, less of W finds a gap: (p - 1)(F + B) -
    (m - 1) W. ZB-H2: (p - 1)(F + B - 2 W), and never below zero; with fewer than
    2 p - 1 microbatches it cannot fill its warm-up, and is refused.

    Raises:
        EstimateError: sizes that the schedule cannot have.
    """
    p, m, v = _check(schedule, stages, microbatches, virtual_stages)
    f = check_amount("forward", forward)
    b = check_amount("backward", backward)
    w = check_amount("weight", weight, zero=True)
    ramp = (p - 1) * (f + b)
    if schedule == "zb-h1":
        return ramp - (min(m, p) - 1) * w
    if schedule == "zb-h2":
        return max(0, (p - 1) * (f + b - 2 * w))
    return divide(ramp, v)


def bubble_fraction(
    *,
    schedule: str = "1f1b",
    stages: int,
    microbatches: int,
    virtual_stages: int = 1,
    of: str = "total",
    forward: Number = 1,
    backward: Number = 1,
    weight: Number = 1,
) -> Number:
    """Return the bubble as a share of ``ideal`` (busy) time or of the ``total``.

    (p - 1) / (v m) of ideal; of total that over one more.
    """
    check_choice("of", of, ("ideal", "total"))
    idle = bubble_time(
        schedule=schedule,
        stages=stages,
        microbatches=microbatches,
        virtual_stages=virtual_stages,
        forward=forward,
        backward=backward,
        weight=weight,
    )
    split = weight if schedule.startswith("zb") else 0
    busy = check_amount("work", microbatches * (forward + backward + split))
    return divide(idle, busy if of == "ideal" else busy + idle)


def bubble_ratio_to_ideal(
    *, stages: int, microbatches: int, virtual_stages: int = 1, schedule: str = "1f1b"
) -> Number:
    """Return the bubble over busy time: (p - 1) / (v m)."""
    return bubble_fraction(
        schedule=schedule,
        stages=stages,
        microbatches=microbatches,
        virtual_stages=virtual_stages,
        of="ideal",
    )


def peak_in_flight(
    *,
    schedule: str = "1f1b",
    stages: int,
    microbatches: int,
    virtual_stages: int = 1,
    rank: int = 0,
) -> Number:
    """Return the microbatches whose activations a rank holds at its peak.

    Counted in passes through all of the rank's layers, so that an interleaved schedule
    can come to a fraction.
    """
    p, m, v = _check(schedule, stages, microbatches, virtual_stages)
    if not 0 <= rank < p:
        raise EstimateError(f"rank: got {rank}, expected 0 to {p - 1}")
    if schedule == "zb-h2":
        return min(m, 2 * p - 1)
    chunks = in_flight(
        schedule=schedule,
        pipeline_parallel=p,
        microbatches=m,
        virtual_stages=v,
        rank=rank,
    )
    return divide(chunks, v)


def _check(
    schedule: str, stages: int, microbatches: int, virtual_stages: int
) -> tuple[int, int, int]:
    check_choice("schedule", schedule, SCHEDULES)
    p = check_count("stages", stages, most=MAX_RANKS)
    m = check_count("microbatches", microbatches)
    v = check_count("virtual_stages", virtual_stages)
    if v > 1 and schedule != "interleaved":
        raise EstimateError(
            f"virtual_stages: got {v} for {schedule}, expected 1 (interleaved has more)"
        )
    if schedule == "interleaved" and m % p:
        raise EstimateError(
            f"microbatches: got {m}, expected a multiple of {p} (stages): the "
            "interleaved schedule takes them in groups"
        )
    if schedule == "zb-h2" and m < 2 * p - 1:
        raise EstimateError(
            f"microbatches: got {m}, expected at least 2 p - 1 = {2 * p - 1} for "
            "zb-h2: its warm-up holds as many, and with fewer the pipeline idles"
        )
    return p, m, v


def simulated_bubble(
    *,
    schedule: str,
    stages: int,
    microbatches: int,
    virtual_stages: int = 1,
    forward: int = 1,
    backward: int = 1,
    weight: int = 1,
) -> tuple[Fraction, Fraction]:
    """Return the bubble of ideal and of total, from running the schedule's orders."""
    orders = get_orders(schedule, stages, microbatches, virtual_stages)
    timeline = get_timeline(orders, forward, backward, weight)
    return get_bubble(timeline, stages)


@dataclass(frozen=True, slots=True)
class Bar:
    """One step of a schedule, to be drawn."""

    rank: int
    start: int
    end: int
    kind: Literal["F", "B", "W"]
    microbatch: int
    chunk: int


def bars(
    *,
    schedule: str,
    stages: int,
    microbatches: int,
    virtual_stages: int = 1,
    forward: int = 1,
    backward: int = 1,
    weight: int = 1,
) -> list[Bar]:
    """Return the steps of a schedule with their times, rank by rank.

    Raises:
        EstimateError: a schedule that is not run here, or too large to look at.
    """
    timeline = _timeline(
        schedule, stages, microbatches, virtual_stages, (forward, backward, weight)
    )
    return sorted(
        (
            Bar(
                rank=step.stage % stages,
                start=start,
                end=end,
                kind=step.kind,
                microbatch=step.microbatch_id,
                chunk=step.stage // stages,
            )
            for step, (start, end) in timeline.items()
        ),
        key=lambda bar: (bar.rank, bar.start),
    )


def grid(
    *,
    schedule: str,
    stages: int,
    microbatches: int,
    virtual_stages: int = 1,
    forward: int = 1,
    backward: int = 1,
    weight: int = 1,
) -> str:
    """Return the schedule as text: a line for each rank, a column for each time unit.

    Raises:
        EstimateError: a schedule that is not run here, or too large to look at.
    """
    timeline = _timeline(
        schedule, stages, microbatches, virtual_stages, (forward, backward, weight)
    )
    return draw(timeline, stages)


def _timeline(
    schedule: str, stages: int, microbatches: int, v: int, times: tuple[int, int, int]
) -> Timeline:
    p, m, v = _check(schedule, stages, microbatches, v)
    if schedule == "zb-h2":
        raise EstimateError("schedule: zb-h2 has a formula here, and no grid")
    names = ("forward", "backward", "weight")
    costs = [check_count(*each) for each in zip(names, times, strict=True)]
    cells = p * v * (m + p) * sum(costs)
    if cells > MAX_DRAWN:
        raise EstimateError(
            f"the grid: got about {cells:,} cells, expected at most {MAX_DRAWN:,}"
        )
    return get_timeline(get_orders(schedule, p, m, v), *costs)


def estimate_bubble(
    *,
    schedule: str,
    stages: int,
    microbatches: int,
    virtual_stages: int = 1,
    forward: Number = 1,
    backward: Number = 1,
    weight: Number = 1,
) -> Estimate:
    """Return the bubble both ways, and the activations in flight on every rank."""
    p, m, v = _check(schedule, stages, microbatches, virtual_stages)
    sizes = {
        "schedule": schedule,
        "stages": p,
        "microbatches": m,
        "virtual_stages": v,
    }
    times = {"forward": forward, "backward": backward, "weight": weight}
    ideal = bubble_fraction(**sizes, of="ideal", **times)  # type: ignore[arg-type]
    total = bubble_fraction(**sizes, of="total", **times)  # type: ignore[arg-type]
    source = SOURCES[schedule]
    formula = _formula(schedule, p, m, v)
    items = [
        Item(
            "bubble of ideal time",
            ideal,
            "fraction",
            formula,
            source,
            "idle / busy time",
        ),
        Item(
            "bubble of total time",
            total,
            "fraction",
            "the same / (1 + the same)",
            source,
            "idle / all of the step",
        ),
    ]
    for rank in sorted({0, p - 1}):
        held = peak_in_flight(**sizes, rank=rank)  # type: ignore[arg-type]
        items.append(
            Item(
                f"in flight on rank {rank}",
                held,
                "microbatches",
                _held_formula(schedule),
                source,
                "activations of all the rank's layers",
            )
        )
    return Estimate(f"{schedule}, p = {p}, m = {m}, v = {v}", tuple(items))


def _formula(schedule: str, p: int, m: int, v: int) -> str:
    if schedule == "zb-h1":
        if m < p:
            return f"((p-1)(F+B) - (m-1) W) / (m (F+B+W)), p = {p}, m = {m}"
        return f"(p-1)(F+B-W) / (m (F+B+W)), p = {p}, m = {m}"
    if schedule == "zb-h2":
        return f"(p-1)(F+B-2W) / (m (F+B+W)), p = {p}, m = {m}"
    if v > 1:
        return f"(p-1) / (v m) = {p - 1} / ({v} × {m})"
    return f"(p-1) / m = {p - 1} / {m}"


def _held_formula(schedule: str) -> str:
    return {
        "gpipe": "m",
        "1f1b": "min(m, p - rank)",
        "interleaved": "min(m v, 2 (p - rank - 1) + (v - 1) p + 1) / v",
        "zb-h1": "min(m, p)",
        "zb-h2": "min(m, 2 p - 1)",
    }[schedule]
