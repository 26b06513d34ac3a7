"""Numbers with units: what is said at the boundaries, and that one module says it."""

from __future__ import annotations

import ast
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from readerkit.wording import numbers
from readerkit.wording.numbers import (
    format_billions,
    format_binary,
    format_bytes,
    format_flop_rate,
    format_flops,
    format_rate,
    format_seconds,
    format_share,
)
from tests.helpers import ROOT


@pytest.mark.parametrize(
    ("value", "decimal", "binary", "aligned"),
    [
        (0, "0 B", "0 B", "0 B"),
        (1, "1 B", "1 B", "1 B"),
        (999, "999 B", "999 B", "999 B"),
        (1_000, "1 kB", "1,000 B", "1.00 kB"),
        (1_023, "1.02 kB", "1,023 B", "1.02 kB"),
        (1_024, "1.02 kB", "1 KiB", "1.02 kB"),
        (9_995, "9.99 kB", "9.76 KiB", "9.99 kB"),
        (9_999, "10 kB", "9.76 KiB", "10.00 kB"),
        (99_950, "100 kB", "97.6 KiB", "99.95 kB"),
        (999_499, "999 kB", "976 KiB", "999.50 kB"),
        (999_500, "1 MB", "976 KiB", "999.50 kB"),
        (999_994, "1 MB", "977 KiB", "999.99 kB"),
        (999_999, "1 MB", "977 KiB", "1.00 MB"),
        (1_000_000, "1 MB", "977 KiB", "1.00 MB"),
        (1_048_575, "1.05 MB", "1 MiB", "1.05 MB"),
        (1_048_576, "1.05 MB", "1 MiB", "1.05 MB"),
        (1_234_567, "1.23 MB", "1.18 MiB", "1.23 MB"),
        (999_999_999_999, "1 TB", "931 GiB", "1.00 TB"),
        (-1, "-1 B", "-1 B", "-1 B"),
        (-999_999, "-1 MB", "-977 KiB", "-1.00 MB"),
        (0.5, "0.5 B", "0.5 B", "0.50 B"),
        (999.7, "1 kB", "1,000 B", "999.70 B"),
        (1_500.0, "1.5 kB", "1.46 KiB", "1.50 kB"),
        (10**18, "1 EB", "888 PiB", "1.00 EB"),
        (10**21, "1,000 EB", "867 EiB", "1,000.00 EB"),
        (math.inf, "inf B", "inf B", "inf B"),
        (math.nan, "nan B", "nan B", "nan B"),
    ],
)
def test_bytes_at_the_boundaries(value, decimal, binary, aligned):
    assert format_bytes(value) == decimal
    assert format_binary(value) == binary
    assert format_bytes(value, 2) == aligned


@given(some.one_of(some.integers(-(10**30), 10**30), some.floats(-1e30, 1e30)))
def test_bytes_are_told_to_three_digits(value):
    """What is said is the number, to half of its last digit; units never run over."""
    text, unit = format_bytes(value).split()
    said = float(text.replace(",", "")) * 1000 ** numbers.BYTES.index(unit)
    assert said == pytest.approx(value, rel=5.1e-3, abs=1e-300)
    digits = re.sub(r"[^0-9]", "", text.partition("e")[0])
    assert unit == "EB" or abs(float(text.replace(",", ""))) < 1000
    assert unit == "EB" or len(digits.lstrip("0")) <= 3


@given(some.integers(0, 10**20), some.integers(0, 10**20))
def test_more_bytes_are_never_said_to_be_fewer(one, other):
    def size(value):
        text, unit = format_bytes(value).split()
        return float(text.replace(",", "")) * 1000 ** numbers.BYTES.index(unit)

    low, high = sorted((one, other))
    assert size(low) <= size(high)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format_rate(0), "0 B/s"),
        (format_rate(450e9), "450 GB/s"),
        (format_rate(3.35e12, 2), "3.35 TB/s"),
        (format_flop_rate(999.96e12), "1 PFLOP/s"),
        (format_flop_rate(989.4e12, 1), "989.4 TFLOP/s"),
        (format_flops(0), "0 FLOPs"),
        (format_flops(4.304e23), "4.304e+23 FLOPs"),
        (format_seconds(0), "0.00 s"),
        (format_seconds(3_600), "3,600.00 s"),
        (format_seconds(0.999_994), "999.99 ms"),
        (format_seconds(0.999_999), "1.00 s"),
        (format_seconds(0.04375), "43.75 ms"),
        (format_seconds(9.6e-6), "9.60 µs"),
        (format_seconds(3e-10), "0.30 ns"),
        (format_seconds(2e-9), "2 ns"),
        (format_seconds(-0.5), "-500.00 ms"),
        (format_share(0.12345), "12.35%"),
        (format_share(1, 0), "100%"),
        (format_share(-0.05, 1), "-5.0%"),
        (format_billions(6_738_415_616), "6.74 B"),
        (numbers.format_milliseconds(0), "0 ms"),
        (numbers.format_milliseconds(0.0005), "0.5 ms"),
        (numbers.format_milliseconds(12), "12000 ms"),
        (numbers.format_number(13), "13"),
        (numbers.format_number(math.nan), "nan"),
    ],
)
def test_other_units(text, expected):
    assert text == expected


def test_no_other_module_writes_a_unit_behind_a_scaled_number():
    """An f-string that divides by 10^3n and ends in a unit is a second formatter."""
    unit = re.compile(r"^\s?(kB|MB|GB|TB|KiB|MiB|GiB|[TPG]FLOP/s|ms|µs)\b")
    found = []
    compare = ("mini_impls/compare", "mini_impls/faults", "mini_impls/demos")
    for folder in ("readerkit", *compare):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if not isinstance(node, ast.JoinedStr):
                    continue
                for value, text in zip(node.values, node.values[1:], strict=False):
                    behind = isinstance(text, ast.Constant) and unit.match(
                        str(text.value)
                    )
                    scaled = isinstance(value, ast.FormattedValue) and isinstance(
                        value.value, ast.BinOp
                    )
                    if behind and scaled:
                        found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not found
