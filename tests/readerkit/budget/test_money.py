"""Prices, hours and cents: exact, and refused where they cannot be."""

from datetime import date
from fractions import Fraction

import pytest

from readerkit.app.catalog import load_prices
from readerkit.budget import Job, Price, parse_usd, show_usd
from readerkit.budget.money import find_price
from readerkit.errors import BudgetError

ENTRY = {
    "vendor": "runpod",
    "gpu": "rtx-4090",
    "kind": "spot",
    "usd_per_hour": "0.35",
    "dated": "2026-11-01",
    "source": "https://example.org",
}
PRICE = Price.parse(ENTRY)


def test_the_sentence_of_the_phase():
    job = Job.parse(PRICE, instances=2, hours="3", setup_hours="0.5", lab="02")
    assert job.cost_cents == 210
    assert job.limit_seconds == 3 * 3600
    assert job.sentence() == (
        "This will rent 2 × rtx-4090 (spot) at runpod for $0.35/h each = $0.70/h, for "
        "3 h (set-up: 0.5 h) = $2.10 at worst."
    )


@pytest.mark.parametrize(
    ("usd", "instances", "hours", "cents"),
    [
        ("0.35", 1, "1", 35),
        ("0.10", 3, "0.1", 3),  # three dimes: floats would make it 4 cents
        ("0.344", 2, "1", 69),  # 68.8 cents, up
        ("0.01", 1, "0.001", 1),  # never nothing
        ("2.69", 8, "24", 51648),
    ],
)
def test_cost_is_exact_and_rounded_up(usd, instances, hours, cents):
    price = Price.parse(ENTRY | {"usd_per_hour": usd})
    assert Job.parse(price, instances=instances, hours=hours).cost_cents == cents


def test_actual_cost_is_rounded_up_too():
    job = Job.parse(PRICE, instances=2, hours="1")
    assert job.cents_for(0) == 0
    assert job.cents_for(1) == 1
    assert job.cents_for(3600) == 70
    assert job.cents_for(1800) == 35


@pytest.mark.parametrize(
    "text", ["nan", "-0.35", "0", "0.00", "inf", "1e9", "", "free"]
)
def test_a_price_that_is_none_is_refused(text):
    with pytest.raises(BudgetError, match="price of rtx-4090 at runpod: got"):
        Price.parse(ENTRY | {"usd_per_hour": text})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"instances": 0}, "instances: got 0, expected 1 to 10,000"),
        ({"instances": -2}, "instances: got -2"),
        ({"hours": "nan"}, "hours: got 'nan', expected a decimal"),
        ({"hours": "0"}, "hours: got 0, expected more than 0"),
        ({"hours": "-1"}, "hours: got '-1'"),
        ({"hours": "1000"}, "hours: got 1000, expected at most 720"),
        ({"setup_hours": "2"}, "setup hours: got 2, expected less than all 2 hours"),
        ({"setup_hours": "x"}, "setup hours: got 'x'"),
        ({"lab": "../02"}, "lab: got '../02'"),
    ],
)
def test_a_job_that_cannot_be_is_named(change, message):
    with pytest.raises(BudgetError, match=message):
        Job.parse(PRICE, **{"instances": 1, "hours": "2"} | change)


def test_the_newest_price_is_taken_and_a_missing_one_named():
    old = Price.parse(ENTRY | {"dated": "2026-01-01", "usd_per_hour": "9"})
    chosen = {"vendor": "runpod", "gpu": "rtx-4090", "kind": "spot"}
    assert find_price([old, PRICE, old], **chosen) == PRICE
    with pytest.raises(
        BudgetError, match="no price: got runpod h100 spot, expected one"
    ):
        find_price([PRICE], **chosen | {"gpu": "h100"})


def test_the_age_of_a_price():
    assert PRICE.age_days(date(2026, 12, 1)) == 30
    with pytest.raises(BudgetError, match="expected one up to today, 2026-10-31"):
        PRICE.age_days(date(2026, 10, 31))
    with pytest.raises(BudgetError, match="got the date '2026-13-01'"):
        Price.parse(ENTRY | {"dated": "2026-13-01"})


def test_dollars_are_whole_cents():
    assert parse_usd("cost", "$3.00") == 300
    assert parse_usd("cost", "0.35") == 35
    with pytest.raises(BudgetError, match="expected whole cents"):
        parse_usd("cost", "0.355")
    assert [show_usd(cents) for cents in (0, 5, 123456, -90)] == [
        "$0.00",
        "$0.05",
        "$1,234.56",
        "-$0.90",
    ]
    assert PRICE.usd_per_hour == Fraction(35, 100)


def test_of_two_clouds_the_dearer_is_priced_unless_one_is_named():
    asked = {"vendor": "runpod", "gpu": "h100-80gb", "kind": "on-demand"}
    prices = load_prices()
    assert find_price(prices, **asked).terms == "on-demand, secure"
    community = find_price(prices, **asked, cloud="community")
    assert (community.usd_per_hour, community.unconfirmed) == (
        Fraction(269, 100),
        False,
    )
