"""Compute and communication of one step: shares, overheads, and what overlap hides."""

from __future__ import annotations

from readerkit.estimate.checks import check_amount
from readerkit.estimate.closed_form import ClosedForm
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.quantity import Number
from readerkit.wording.numbers import format_seconds, format_share

# No more of it can hide than there is compute to hide behind.
_EXPOSED = "max(communication_s × (1 - hidden_fraction), communication_s - compute_s)"
exposed_seconds = ClosedForm(
    _EXPOSED, zero="communication_s compute_s", hidden_fraction=0
)
"""The communication that compute does not hide."""
step_seconds = ClosedForm(
    f"compute_s + {_EXPOSED}", zero="communication_s", hidden_fraction=0
)
communication_share = ClosedForm(
    f"{_EXPOSED} / (compute_s + {_EXPOSED})", zero="communication_s", hidden_fraction=0
)
"""Exposed communication over the whole step."""
communication_overhead = ClosedForm(
    f"{_EXPOSED} / compute_s", zero="communication_s", hidden_fraction=0
)
overlap_speedup = ClosedForm(
    f"(compute_s + communication_s) / (compute_s + {_EXPOSED})", zero="communication_s"
)
"""How many times the throughput is with overlap, over without."""


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
    exposed = exposed_seconds(
        communication_s=sheet.given("communication", communication_s, "given"),
        hidden_fraction=sheet.given("hidden", hidden_fraction, "a share of it"),
        compute_s=sheet.given("compute", compute_s, "given"),
    )
    check_amount("compute", compute_s)
    sheet.write(
        f"""
        exposed [seconds] = shown | a count
            | at most what compute has room for; {named}
        step [seconds] = compute + exposed | a count | {named}
        share of total [fraction] = exposed / step | a count | {named}
        overhead over compute [fraction] = exposed / compute | a count | {named}
        efficiency [fraction] = 1 - share of total | a count | compute / step
        step without overlap [seconds] = compute + communication | a count | all shows
        throughput with overlap [times] = step without overlap / step
            | a count | {named}
        time saved by overlap [fraction] = 1 - step / step without overlap
            | a count | {named}
        """,
        shown=exposed,
    )
    return sheet.estimate()
