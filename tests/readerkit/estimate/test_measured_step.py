"""A step at rates that were measured: the sum of the estimates, with other numbers."""

import pytest

from readerkit.errors import EstimateError
from readerkit.estimate.measured_step import MeasuredRates, measured_step

RATES = MeasuredRates(flops_per_s=1e9, call_s=0.01, bytes_per_s=1e6)
SENDING = 4 * 0.01 + 2e5 / 1e6


def test_what_stands_in_the_way_shows_whole():
    time = measured_step(RATES, compute_s=1.0, calls=4, sent_bytes=2e5)
    assert time.exposed == {"tp": pytest.approx(SENDING)}
    assert time.total == pytest.approx(1 + SENDING) and not time.bubble


def test_data_parallel_traffic_hides_as_far_as_there_is_compute():
    more = {"calls": 4, "sent_bytes": 2e5, "axis": "dp", "overlap": 0.5}
    long = measured_step(RATES, compute_s=1.0, **more)
    assert long.exposed["dp"] == pytest.approx(SENDING / 2)
    short = measured_step(RATES, compute_s=0.01, **more)
    assert short.exposed["dp"] == pytest.approx(SENDING - 0.01)


@pytest.mark.parametrize("idle", [0.0, 0.2, 0.75])
def test_the_bubble_is_that_share_of_the_step(idle):
    time = measured_step(RATES, compute_s=1.0, calls=4, axis="pp", idle=idle)
    assert time.bubble_share == pytest.approx(idle)
    assert time.total == pytest.approx(1.04 / (1 - idle))


def test_a_step_that_computes_nothing_is_refused():
    with pytest.raises(EstimateError, match="compute"):
        measured_step(RATES, compute_s=0.0)
    with pytest.raises(EstimateError, match="idle"):
        measured_step(RATES, compute_s=1.0, idle=1.5)
