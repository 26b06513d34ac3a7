"""Gradient compression: ratio to a named baseline, and what is really sent.

A ratio says little alone: 16-bit gradients halve fp32 ones and do nothing to bf16 ones,
and a scheme whose messages cannot be summed on the way has to gather all of them.
"""

from __future__ import annotations

from readerkit.errors import EstimateError
from readerkit.estimate.closed_form import ClosedForm, checked
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.quantity import Number, Quantity, divide

BASELINES = {"fp32": 4, "bf16": 2, "fp16": 2}
METHODS = ("fp16", "int8", "top-k", "powersgd")
HOOKS = "pytorch: torch/distributed/algorithms/ddp_comm_hooks"


@checked(baseline=BASELINES)
def cast_ratio(*, bits: int, baseline: str = "fp32") -> Number:
    """Return how many times smaller a cast makes gradients of the baseline."""
    return divide(8 * BASELINES[baseline], bits)


@checked(zero="index_bytes", baseline=BASELINES)
def top_k_ratio(
    *, kept_fraction: Number, baseline: str = "fp32", index_bytes: int = 4
) -> Number:
    """Return how many times smaller the largest values with their indices are."""
    if not kept_fraction:
        raise EstimateError("kept_fraction: got 0, expected more than zero")
    size = BASELINES[baseline]
    return divide(size, kept_fraction * (size + index_bytes))


powersgd_ratio = ClosedForm(
    "rows × columns / (rank × (rows + columns))", whole="rows columns rank"
)
"""A matrix against its two factors of the same type.

Source: Vogels et al. 1905.13727, section 3.
"""


@checked(zero="rows columns", method=METHODS, baseline=BASELINES)
def compressed_bytes(
    *,
    elements: Number,
    ranks: int,
    method: str,
    baseline: str = "fp32",
    kept_fraction: Number = 0.01,
    rows: int = 0,
    columns: int = 0,
    rank: int = 1,
) -> Number:
    """Return the bytes that one rank sends to average gradients compressed in this way.

    Casts to 16 bits and PowerSGD's factors can be summed on the way: a ring
    all-reduce. Integers with a scale, and sparse values, cannot: an all-gather of
    everyone's message.
    """
    n, size = ranks, BASELINES[baseline]
    if method == "fp16":
        return divide(2 * (n - 1) * 2 * elements, n)
    if method == "int8":
        return (n - 1) * elements
    if method == "top-k":
        ratio = top_k_ratio(kept_fraction=kept_fraction, baseline=baseline)
        return divide((n - 1) * elements * size, ratio)
    ratio = powersgd_ratio(rows=rows, columns=columns, rank=rank)
    return divide(divide(2 * (n - 1) * (size * elements), ratio), n)


@checked(baseline=BASELINES)
def estimate_compression(
    *,
    elements: Number,
    ranks: int,
    baseline: str = "fp32",
    kept_fraction: Number = 0.01,
    rows: int = 4096,
    columns: int = 4096,
    rank: int = 4,
) -> Estimate:
    """Return each method's ratio and traffic beside the uncompressed all-reduce."""
    sheet, named = Worksheet("gradient compression"), f"baseline {baseline}"
    n = sheet.given("n", ranks, "ranks")
    count = sheet.given("N", elements, "elements")
    kept = sheet.given("q", kept_fraction, "share of values kept")
    matrix = {
        "rows": sheet.given("x", rows, "rows of a matrix"),
        "columns": sheet.given("y", columns, "columns of a matrix"),
        "rank": sheet.given("r", rank, "rank of PowerSGD"),
    }
    sheet.write(
        f"""
        uncompressed [bytes] = 2 × (n - 1) × {BASELINES[baseline]} × N / n
            | a count | {named}; ring all-reduce
        """
    )
    for method, ratio, how, source, custom in (
        ("fp16", _cast(16, baseline), "all-reduce", HOOKS, "a cast"),
        ("int8", _cast(8, baseline), "all-gather", HOOKS, "a cast; scales left out"),
        (
            "top-k",
            top_k_ratio(kept_fraction=kept, baseline=baseline),
            "all-gather",
            "Aji and Heafield 1704.05021",
            "4 B indices; error feedback keeps the rest locally",
        ),
        (
            "powersgd",
            powersgd_ratio(**matrix),
            "all-reduce",
            "Vogels et al. 1905.13727",
            "a matrix against its two factors",
        ),
    ):
        sheet.add(f"{method} ratio", ratio, "times", source, f"{named}; {custom}")
        sent = compressed_bytes(
            method=method,
            elements=count,
            ranks=n,
            baseline=baseline,
            kept_fraction=kept,
            **matrix,
        )
        sheet.add(f"{method} sent", sent, "bytes", source, f"{named}; {how}")
    sheet.notes.append(
        "int8 with scales and sparse values cannot be summed on the way: every rank "
        "receives every other's message, so more ranks eat the ratio"
    )
    return sheet.estimate()


def _cast(bits: int, baseline: str) -> Number:
    width = Quantity.given("bits", bits, "of a value that is sent")
    return cast_ratio(bits=width, baseline=baseline)
