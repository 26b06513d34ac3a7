"""Rows of a worksheet, and formulas that are data."""

import pytest

from readerkit.errors import EstimateError
from readerkit.estimate.closed_form import ClosedForm
from readerkit.estimate.item import Worksheet
from readerkit.estimate.quantity import Quantity


def test_a_row_is_made_of_what_is_given_and_of_the_rows_above():
    sheet = Worksheet("checkpoints of a run")
    sheet.given("N", 8 * 10**9, "parameters")
    sheet.given("time between failures", 10_800)
    sheet.write(
        """
        checkpoint [bytes] = 14 × N | a count | weights and optimizer
        time to write [seconds] = checkpoint / width
            | a count | the bandwidth given
        interval [seconds]
            = sqrt(2 × time to write × time between failures)
            | Young 1974 | first order
        """,
        width=Quantity.given("B", 4 * 10**9, "bytes/s of the storage"),
    )
    items = {item.name: item for item in sheet.estimate().items}
    assert [item.formula for item in items.values()] == [
        "14 N",
        "checkpoint / B",
        "sqrt(2 × time to write × time between failures)",
    ]
    assert sheet["time to write"].value == 28
    assert items["interval"].value == pytest.approx(777.7, abs=0.1)
    assert items["interval"].source == "Young 1974"
    assert items["interval"].convention == "first order"


@pytest.mark.parametrize(
    "row",
    [
        "a bubble of 3",
        "work [bytes] = 2 × N | a count",
        "work [smoots] = 2 × N | a count | a custom",
    ],
)
def test_a_row_without_unit_source_or_convention_is_none(row):
    sheet = Worksheet("work")
    sheet.given("N", 2)
    with pytest.raises(ValueError, match="no row of a worksheet: got"):
        sheet.write(row)


RATE = ClosedForm(
    "work_bytes / (ranks × wait_s × kept_fraction)",
    whole="ranks",
    zero="work_bytes",
    kept_fraction=1,
)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"work_bytes": 10**18 + 1, "ranks": 1, "wait_s": 1}, 10**18 + 1),
        ({"work_bytes": 0, "ranks": 3, "wait_s": 1}, 0),
        ({"work_bytes": 3, "ranks": 2, "wait_s": 1, "kept_fraction": 0.5}, 3.0),
    ],
)
def test_a_closed_form_is_exact_and_fills_what_is_left_out(given, value):
    assert RATE(**given) == value


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"ranks": 1.5}, EstimateError, "ranks: got 1.5, expected a whole number"),
        ({"ranks": 0}, EstimateError, "ranks: got 0, expected at least 1"),
        ({"wait_s": 0}, EstimateError, "wait: got 0, expected more than zero"),
        ({"work_bytes": -1}, EstimateError, "work_bytes: got -1, expected zero"),
        ({"kept_fraction": 2}, EstimateError, "kept_fraction: got 2, expected a share"),
        ({"speed": 1}, TypeError, "unexpected argument 'speed'"),
    ],
)
def test_a_closed_form_refuses_what_cannot_be(given, error, says):
    with pytest.raises(error, match=says):
        RATE(**{"work_bytes": 1, "ranks": 1, "wait_s": 1} | given)
    with pytest.raises(TypeError, match="missing argument 'wait_s'"):
        RATE(work_bytes=1, ranks=1)


def test_a_closed_form_of_quantities_knows_its_formula():
    work, ranks = Quantity.given("S", 12, "bytes"), Quantity.given("n", 3, "ranks")
    rate = RATE(work_bytes=work, ranks=ranks, wait_s=2)
    assert (rate.value, rate.formula, rate.substitution) == (
        2,
        "S / (2 n)",
        "12 / (2 × 3)",
    )
