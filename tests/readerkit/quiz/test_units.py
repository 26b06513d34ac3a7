"""Quantities as people type them."""

from __future__ import annotations

import pytest

from readerkit.quiz.units import (
    UNITS,
    QuantityError,
    binary_twin,
    convert,
    find_unit,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("112", 112, ""),
        ("112 GB", 112, "GB"),
        ("1,120GB", 1120, "GB"),
        ("104.3 GiB", 104.3, "GiB"),
        ("104.3 gib", 104.3, "GiB"),
        ("-2.5e-3 s", -0.0025, "s"),
        (".5", 0.5, ""),
        ("3/16", 0.1875, ""),
        ("18.75 %", 18.75, "%"),
        ("18.75 percent", 18.75, "%"),
        ("$2.10", 2.1, "$"),
        ("2.10 usd", 2.1, "$"),
        ("1_000 bytes", 1000, "B"),
        ("25 GB/s", 25, "GB/s"),
        ("12 Gbit", 12, "Gbit"),
        ("5 µs", 5, "us"),
        ("6 hours", 6, "h"),
        ("2.5x", 2.5, "x"),
        ("  7 TFLOP  ", 7, "TFLOP"),
        ("1,234,567.5 kB/s", 1234567.5, "kB/s"),
        ("2^-9", 2**-9, ""),
        ("2**10 B", 1024, "B"),
        ("30*16", 480, ""),
        ("30 x 16 GB", 480, "GB"),
        ("3×10⁹", 3e9, ""),
        ("(3 + 1)/16", 0.25, ""),
        ("~480 GB", 480, "GB"),
        ("480 GB.", 480, "GB"),
        ("≈ 5 µs", 5, "us"),
        ("about 5", 5, ""),
        ("5 Gb/sec".replace("b", "B"), 5, "GB/s"),
        ("1\N{NO-BREAK SPACE}120 GB", 1120, "GB"),
        ("007", 7, ""),
        ("1.0*5", 5, ""),
        ("12 gigabytes", 12, "GB"),
        ("4 Gbyte", 4, "GB"),
        ("4 gibibytes", 4, "GiB"),
        ("1280 microseconds", 1280, "us"),
        ("3 días", 3, "days"),
        ("2 weeks", 2, "weeks"),
        ("US$5", 5, "$"),
        ("350 cents", 350, "cents"),
    ],
)
def test_quantity_is_read(text, number, unit):
    quantity = parse_quantity(text)
    assert quantity.number == pytest.approx(number)
    assert quantity.unit == unit


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GB",
        "about",
        "5 furlongs",
        "1/0",
        "5 GB GB",
        "--5",
        "1e",
        "5" * 300,
        "2^9999",
        "1e400",
        "-1e400 GB",
        "1e300 GB",
        "2**2**2**9",
        "(3",
        "3 3",
        "()",
        "5 GB + 2 GB",
        "*" * 199,
    ],
)
def test_what_is_no_quantity_is_refused(text):
    with pytest.raises(QuantityError):
        parse_quantity(text)


def test_hexadecimal_is_no_product_with_nothing():
    with pytest.raises(QuantityError, match="got '0x1000'"):
        parse_quantity("0x1000")


@pytest.mark.parametrize("text", ["138,46", "0,125", "1.120,5", "12,5 GB", "1,12,000"])
def test_comma_that_parts_no_thousands_is_told(text):
    with pytest.raises(QuantityError, match="decimal point"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("48.6 Gb", "GB for bytes or Gbit for bits"),
        ("48.6 gb", "GB for bytes or Gbit for bits"),
        ("5 kb", "kB for bytes or kbit for bits"),
        ("5 Kb", "kB for bytes or kbit for bits"),
        ("5 b", "B for bytes or bit for bits"),
        ("5 Gib", "GiB for bytes"),
        ("5 Gb/s", "GB/s for bytes"),
    ],
)
def test_small_b_is_not_taken_for_bytes(text, said):
    with pytest.raises(QuantityError, match=said):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("number", "unit", "to", "value"),
    [
        (1, "GiB", "GB", 1.073741824),
        (1, "GB", "MB", 1000),
        (8, "Gbit", "GB", 1),
        (50, "%", "", 0.5),
        (2, "h", "min", 120),
        (1, "days", "s", 86_400),
        (1, "TFLOP", "GFLOP", 1000),
        (1, "TiB", "GiB", 1024),
    ],
)
def test_units_convert(number, unit, to, value):
    assert convert(number, unit, to) == pytest.approx(value)


def test_every_unit_is_found_under_its_own_name():
    assert {find_unit(unit) for unit in UNITS} == set(UNITS)


@pytest.mark.parametrize(
    ("unit", "twin"),
    [
        ("GB", "GiB"),
        ("GiB", "GB"),
        ("kB", "KiB"),
        ("KiB", "kB"),
        ("MB/s", "MiB/s"),
        ("B", None),
        ("s", None),
        ("%", None),
        ("Gbit", None),
    ],
)
def test_binary_and_decimal_bytes_are_twins(unit, twin):
    assert binary_twin(unit) == twin
