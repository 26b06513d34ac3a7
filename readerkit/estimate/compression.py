"""Gradient compression: ratio to a named baseline, and what is really sent.

A ratio says little alone: 16-bit gradients halve fp32 ones and do nothing to bf16 ones,
and a scheme whose messages cannot be summed on the way has to gather all of them.
"""

from __future__ import annotations

from typing import Any

from readerkit.errors import EstimateError
from readerkit.estimate.checks import (
    check_amount,
    check_choice,
    check_count,
    check_fraction,
)
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.quantity import Number, Quantity, divide

BASELINES = {"fp32": 4, "bf16": 2, "fp16": 2}
METHODS = ("fp16", "int8", "top-k", "powersgd")
HOOKS = "pytorch: torch/distributed/algorithms/ddp_comm_hooks"


def cast_ratio(*, bits: int, baseline: str = "fp32") -> Number:
    """Return how many times smaller a cast makes gradients of the baseline."""
    check_choice("baseline", baseline, BASELINES)
    return divide(8 * BASELINES[baseline], check_count("bits", bits))


def top_k_ratio(
    *, kept_fraction: Number, baseline: str = "fp32", index_bytes: int = 4
) -> Number:
    """Return how many times smaller the largest values with their indices are."""
    check_choice("baseline", baseline, BASELINES)
    size = BASELINES[baseline]
    kept = check_fraction("kept_fraction", kept_fraction)
    if not kept:
        raise EstimateError("kept_fraction: got 0, expected more than zero")
    pair = size + check_count("index_bytes", index_bytes, least=0)
    return divide(size, kept * pair)


def powersgd_ratio(*, rows: int, columns: int, rank: int) -> Number:
    """Return n m / (r (n + m)): a matrix against its two factors of the same type.

    Source: Vogels et al. 1905.13727, section 3.
    """
    n, m, r = (
        check_count("rows", rows),
        check_count("columns", columns),
        check_count("rank", rank),
    )
    return divide(n * m, r * (n + m))


def powersgd_compresses(
    *, rows: int, columns: int, rank: int, min_compression_rate: Number = 2
) -> bool:
    """Return whether torch's hook would compress a matrix of this shape.

    Source: pytorch: torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py.
    """
    factors = (check_count("rows", rows) + check_count("columns", columns)) * rank
    return factors * min_compression_rate < rows * columns


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
    check_choice("method", method, METHODS)
    check_choice("baseline", baseline, BASELINES)
    count, n = check_amount("elements", elements), check_count("ranks", ranks)
    if method == "fp16":
        return divide(2 * (n - 1) * 2 * count, n)
    if method == "int8":
        return (n - 1) * count
    if method == "top-k":
        ratio = top_k_ratio(kept_fraction=kept_fraction, baseline=baseline)
        return divide((n - 1) * count * BASELINES[baseline], ratio)
    size = BASELINES[baseline] * count
    ratio = powersgd_ratio(rows=rows, columns=columns, rank=rank)
    return divide(divide(2 * (n - 1) * size, ratio), n)


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
    check_choice("baseline", baseline, BASELINES)
    check_count("ranks", ranks)
    check_amount("elements", elements)
    sheet, named = Worksheet("gradient compression"), f"baseline {baseline}"
    sizes: dict[str, Any] = {
        "elements": Quantity.given("N", elements, "elements"),
        "ranks": Quantity.given("n", ranks, "ranks"),
        "baseline": baseline,
        "kept_fraction": Quantity.given("q", kept_fraction, "share of values kept"),
        "rows": Quantity.given("x", rows, "rows of a matrix"),
        "columns": Quantity.given("y", columns, "columns of a matrix"),
        "rank": Quantity.given("r", rank, "rank of PowerSGD"),
    }
    n = sizes["ranks"]
    plain = divide(2 * (n - 1) * BASELINES[baseline] * sizes["elements"], n)
    sheet.add("uncompressed", plain, "bytes", "a count", f"{named}; ring all-reduce")
    matrix = {name: sizes[name] for name in ("rows", "columns", "rank")}
    kept = sizes["kept_fraction"]
    ratios: dict[str, tuple[Number, str, str]] = {
        "fp16": (_cast(16, baseline), HOOKS, "a cast"),
        "int8": (_cast(8, baseline), HOOKS, "a cast; scales left out"),
        "top-k": (
            top_k_ratio(kept_fraction=kept, baseline=baseline),
            "Aji and Heafield 1704.05021",
            "4 B indices; error feedback keeps the rest locally",
        ),
        "powersgd": (
            powersgd_ratio(**matrix),
            "Vogels et al. 1905.13727",
            "a matrix against its two factors",
        ),
    }
    for method, (ratio, source, custom) in ratios.items():
        sheet.add(f"{method} ratio", ratio, "times", source, f"{named}; {custom}")
        sent = compressed_bytes(method=method, **sizes)
        how = "all-gather" if method in ("int8", "top-k") else "all-reduce"
        sheet.add(f"{method} sent", sent, "bytes", source, f"{named}; {how}")
    sheet.notes.append(
        "int8 with scales and sparse values cannot be summed on the way: every rank "
        "receives every other's message, so more ranks eat the ratio"
    )
    return sheet.estimate()


def _cast(bits: int, baseline: str) -> Number:
    width = Quantity.given("bits", bits, "of a value that is sent")
    return cast_ratio(bits=width, baseline=baseline)
