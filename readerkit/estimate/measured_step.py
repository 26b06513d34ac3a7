"""A step on a machine whose rates were measured: the sum of ``estimate step``.

There rates come from data sheets and from fits; here each of them is a figure of this
machine, measured just before. What it takes to wait for a neighbour that is late is in
neither.
"""

from __future__ import annotations

from typing import NamedTuple

from readerkit.estimate.checks import check_amount, check_fraction
from readerkit.estimate.step_time import StepTime, spend


class MeasuredRates(NamedTuple):
    """What one rank reached while all of them did the same."""

    flops_per_s: float
    """In a training step without communication."""
    call_s: float
    """Of a collective of next to nothing."""
    bytes_per_s: float
    """Sent by a rank in a collective that is large."""


def measured_step(
    rates: MeasuredRates,
    *,
    compute_s: float,
    calls: float = 0.0,
    sent_bytes: float = 0.0,
    axis: str = "tp",
    overlap: float = 0.0,
    idle: float = 0.0,
) -> StepTime:
    """Return where the time of one rank's step goes.

    ``idle`` is the share of the step that a pipeline's schedule leaves empty; ``axis``
    says whether traffic stands in the way of compute, or may hide behind it, as far as
    ``overlap`` says.

    Raises:
        EstimateError: no compute, or a share that is none.
    """
    check_amount("compute", compute_s)
    check_fraction("idle", idle)
    sending = calls * rates.call_s + sent_bytes / rates.bytes_per_s
    return spend(
        {axis: sending},
        microbatch_s=compute_s,
        microbatches=1,
        idle=idle / (1 - idle),
        overlap=overlap,
        ideal_s=compute_s,
    )
