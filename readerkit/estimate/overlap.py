"""Compute and communication of one step: shares, overheads, and what overlap hides."""

from __future__ import annotations

from readerkit.estimate.checks import check_amount, check_fraction
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.quantity import Number, Quantity, divide, maximum
from readerkit.wording.numbers import format_seconds, format_share

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
    return maximum(communication * (1 - share), communication - compute)


def step_seconds(
    *, compute_s: Number, communication_s: Number, hidden_fraction: Number = 0
) -> Number:
    """Return compute plus what of the communication is exposed."""
    return check_amount("compute", compute_s) + exposed_seconds(
        communication_s=communication_s,
        hidden_fraction=hidden_fraction,
        compute_s=compute_s,
    )


def communication_share(**times: Number) -> Number:
    """Return exposed communication over the whole step."""
    return divide(exposed_seconds(**times), step_seconds(**times))


def communication_overhead(**times: Number) -> Number:
    """Return exposed communication over compute."""
    exposed = exposed_seconds(**times)
    return divide(exposed, check_amount("compute", times["compute_s"]))


def overlap_speedup(
    *, compute_s: Number, communication_s: Number, hidden_fraction: Number
) -> Number:
    """Return how many times the throughput is with overlap, over without."""
    times = {"compute_s": compute_s, "communication_s": communication_s}
    with_overlap = step_seconds(**times, hidden_fraction=hidden_fraction)
    return divide(step_seconds(**times), with_overlap)


def estimate_overlap(
    *, compute_s: Number, communication_s: Number, hidden_fraction: Number = 0
) -> Estimate:
    """Return share, overhead and the gain of overlap, each by its own name."""
    sheet = Worksheet("compute and communication")
    named = f"{format_share(hidden_fraction, 0)} of communication hidden"
    if hidden_fraction * communication_s > compute_s:
        hidden = format_share(compute_s / communication_s, 1)
        sheet.notes.append(
            f"{format_share(hidden_fraction, 0)} of {format_seconds(communication_s)} "
            f"cannot hide behind {format_seconds(compute_s)} of compute: {hidden} "
            "is hidden, and no more"
        )
        named = f"{hidden} of communication hidden"
    exposed = sheet.add(
        "exposed",
        exposed_seconds(
            communication_s=Quantity.given("communication", communication_s, "given"),
            hidden_fraction=Quantity.given("hidden", hidden_fraction, "a share of it"),
            compute_s=Quantity.given("compute", compute_s, "given"),
        ),
        "seconds",
        SOURCE,
        f"at most what compute has room for; {named}",
    )
    compute = Quantity.given("compute", check_amount("compute", compute_s), "given")
    communication = Quantity.given("communication", communication_s, "given")
    step = sheet.add("step", compute + exposed, "seconds", SOURCE, named)
    share = sheet.add(
        "share of total", divide(exposed, step), "fraction", SOURCE, named
    )
    over = divide(exposed, compute)
    sheet.add("overhead over compute", over, "fraction", SOURCE, named)
    sheet.add("efficiency", 1 - share, "fraction", SOURCE, "compute / step")
    without = sheet.add(
        "step without overlap", compute + communication, "seconds", SOURCE, "all shows"
    )
    gain = divide(without, step)
    sheet.add("throughput with overlap", gain, "times", SOURCE, named)
    saved = 1 - divide(step, without)
    sheet.add("time saved by overlap", saved, "fraction", SOURCE, named)
    return sheet.estimate()
