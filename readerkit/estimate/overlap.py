"""Compute and communication of one step: shares, overheads, and what overlap hides."""

from __future__ import annotations

from readerkit.estimate.quantity import (
    Estimate,
    Item,
    Number,
    check_amount,
    check_fraction,
)

SOURCE = "a count"


def exposed_seconds(
    *, communication_s: Number, hidden_fraction: Number = 0, compute_s: Number
) -> Number:
    """Return the communication that compute does not hide.

    No more of it can hide than there is compute to hide behind.
    """
    communication = check_amount("communication", communication_s, zero=True)
    share = check_fraction("hidden_fraction", hidden_fraction)
    compute = check_amount("compute", compute_s, zero=True)
    return max(communication * (1 - share), communication - compute)


def step_seconds(
    *, compute_s: Number, communication_s: Number, hidden_fraction: Number = 0
) -> Number:
    """Return compute plus what of the communication is exposed."""
    return check_amount("compute", compute_s) + exposed_seconds(
        communication_s=communication_s,
        hidden_fraction=hidden_fraction,
        compute_s=compute_s,
    )


def communication_share(
    *, compute_s: Number, communication_s: Number, hidden_fraction: Number = 0
) -> Number:
    """Return exposed communication over the whole step."""
    exposed = exposed_seconds(
        communication_s=communication_s,
        hidden_fraction=hidden_fraction,
        compute_s=compute_s,
    )
    return exposed / (check_amount("compute", compute_s) + exposed)


def communication_overhead(
    *, compute_s: Number, communication_s: Number, hidden_fraction: Number = 0
) -> Number:
    """Return exposed communication over compute."""
    exposed = exposed_seconds(
        communication_s=communication_s,
        hidden_fraction=hidden_fraction,
        compute_s=compute_s,
    )
    return exposed / check_amount("compute", compute_s)


def overlap_speedup(
    *, compute_s: Number, communication_s: Number, hidden_fraction: Number
) -> Number:
    """Return how many times the throughput is with overlap, over without."""
    return step_seconds(
        compute_s=compute_s, communication_s=communication_s
    ) / step_seconds(
        compute_s=compute_s,
        communication_s=communication_s,
        hidden_fraction=hidden_fraction,
    )


def estimate_overlap(
    *, compute_s: Number, communication_s: Number, hidden_fraction: Number = 0
) -> Estimate:
    """Return share, overhead and the gain of overlap, each by its own name."""
    times = {"compute_s": compute_s, "communication_s": communication_s}
    step = step_seconds(**times, hidden_fraction=hidden_fraction)
    share = communication_share(**times, hidden_fraction=hidden_fraction)
    over = communication_overhead(**times, hidden_fraction=hidden_fraction)
    gain = overlap_speedup(**times, hidden_fraction=hidden_fraction)
    plain = step_seconds(**times)
    named = f"{hidden_fraction:.0%} of communication hidden"
    notes = []
    if hidden_fraction * communication_s > compute_s:
        named = f"{compute_s / communication_s:.1%} of communication hidden"
        notes.append(
            f"{hidden_fraction:.0%} of {communication_s:g} s cannot hide behind "
            f"{compute_s:g} s of compute: that much is hidden, and no more"
        )
    items = (
        Item("step", step, "seconds", "compute + exposed", SOURCE, named),
        Item("share of total", share, "fraction", "exposed / step", SOURCE, named),
        Item(
            "overhead over compute",
            over,
            "fraction",
            "exposed / compute",
            SOURCE,
            named,
        ),
        Item(
            "efficiency",
            1 - share,
            "fraction",
            "compute / step = 1 - share",
            SOURCE,
            named,
        ),
        Item(
            "throughput with overlap",
            gain,
            "times",
            "step without / with",
            SOURCE,
            named,
        ),
        Item(
            "time saved by overlap",
            1 - step / plain,
            "fraction",
            "1 - step with / without",
            SOURCE,
            named,
        ),
    )
    return Estimate("compute and communication", items, tuple(notes))
