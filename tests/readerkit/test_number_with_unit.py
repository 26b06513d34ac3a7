"""Quantities as people type them."""

from __future__ import annotations

import click
import pytest

from readerkit.commands.quantity_options import COUNT, MEMORY, PARAMETERS, RATE, SIZE
from readerkit.model.number_with_unit import (
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
        ("1\N{THIN SPACE}120.5 GB", 1120.5, "GB"),
        ("1\N{NARROW NO-BREAK SPACE}120 GB", 1120, "GB"),
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
    ("text", "size"),
    [
        ("3 GiB", 3 * 2**30),
        ("80gib", 80 * 2**30),
        ("80 gibibytes", 80 * 2**30),
        ("1.5e3 MB", 1.5e9),
        ("1,120GB", 1.12e12),
        ("1_000 KB", 1e6),
        ("5.GB", 5e9),
        ("+.5 GB", 5e8),
        ("0.3GB", 3e8),
        ("2*80 GB", 1.6e11),
        ("8 EB", 8e18),
        ("1EiB", 2**60),
        ("4 Gbytes", 4e9),
        ("4000 bytes", 4000),
        ("8Gbit", 1e9),
        ("8 gigabits", 1e9),
        ("8Gibit", 2**30),
        ("16 Kbits", 2000),
    ],
)
def test_a_size_is_the_same_in_an_answer_and_on_the_command_line(text, size):
    answer = parse_quantity(text)
    assert convert(answer.number, answer.unit, "B") == pytest.approx(size)
    assert SIZE.convert(text, None, None) == size


@pytest.mark.parametrize(
    "text",
    [
        "48.6 gb",
        "5 kb",
        "5mB",
        "5mb",
        "5,5 GB",
        "5GBB",
        "GB",
        "5 GB GB",
        "5 furlongs",
        "1e400GB",
    ],
)
def test_what_is_no_size_is_one_on_neither_side(text):
    with pytest.raises(QuantityError):
        parse_quantity(text)
    with pytest.raises(click.BadParameter):
        SIZE.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("50GB/s", 50e9),
        ("50 gigabytes per second", 50e9),
        ("50GBps", 50e9),
        ("50 GiB/sec", 50 * 2**30),
        ("400Gbit/s", 50e9),
    ],
)
def test_a_rate_is_the_same_in_an_answer_and_on_the_command_line(text, rate):
    answer = parse_quantity(text, to="B/s")
    assert convert(answer.number, answer.unit, "B/s") == pytest.approx(rate)
    assert RATE.convert(text, None, None) == rate


@pytest.mark.parametrize(
    ("text", "size"), [("400Gb", 50e9), ("400Gb/s", 50e9), ("400Gbps", 50e9)]
)
def test_a_b_is_a_bit_on_the_command_line_alone(text, size):
    with pytest.raises(QuantityError, match=r"GB.* for bytes or Gbit.* for bits"):
        parse_quantity(text)
    assert RATE.convert(text, None, None) == size


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("7", 7),
        ("1_000", 1000),
        ("1,000", 1000),
        ("1.5e12", 1.5e12),
        ("2.3B", 2_300_000_000),
        ("2.3 billion", 2_300_000_000),
        ("7B parameters", 7e9),
        ("300 K", 300_000),
        ("2T", 2e12),
    ],
)
def test_a_count_is_the_same_in_an_answer_and_on_the_command_line(text, count):
    answer = parse_quantity(text, to="")
    assert convert(answer.number, answer.unit, "") == count
    assert COUNT.convert(text, None, None) == count


def test_of_counts_a_small_m_is_a_million_on_the_command_line_alone():
    assert PARAMETERS.convert("3000m", None, None) == 3 * 10**9
    with pytest.raises(QuantityError):
        parse_quantity("3000m", to="")


@pytest.mark.parametrize("text", ["50%", "$5", "7 GB", "3Gb", "5 min", "7e9B", "0.5"])
def test_what_has_another_unit_or_is_broken_is_no_count(text):
    with pytest.raises(click.BadParameter, match="expected"):
        COUNT.convert(text, None, None)


@pytest.mark.parametrize("text", ["80", "80B", "80Gb", "80gb", "80GB/s"])
def test_memory_of_a_gpu_has_a_large_unit_of_bytes(text):
    with pytest.raises(click.BadParameter, match="expected"):
        MEMORY.convert(text, None, None)


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
