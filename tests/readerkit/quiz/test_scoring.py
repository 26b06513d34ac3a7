"""The worked examples of every formula."""

from __future__ import annotations

import pytest

from readerkit.quiz.scoring import (
    choice_credit,
    corrected_score,
    order_credit,
    retry_points,
    share_above_constant,
    wilson_interval,
)
from readerkit.quiz.tolerance import AnswerTolerance


@pytest.mark.parametrize(
    ("chosen", "right", "wrongly", "wrong", "credit"),
    [
        (3, 3, 0, 2, 1),
        (2, 3, 0, 2, 2 / 3),
        (3, 3, 1, 2, 1 / 2),
        (2, 2, 2, 2, 0),  # all letters
        (0, 2, 1, 2, 0),
        (0, 2, 0, 2, 0),
    ],
)
def test_choice_takes_off_what_was_chosen_wrongly(
    chosen, right, wrongly, wrong, credit
):
    assert choice_credit(chosen, right, wrongly, wrong) == pytest.approx(credit)


def test_one_answer_for_all_earns_nothing():
    assert share_above_constant(3, 6, 3) == 0
    assert share_above_constant(5, 6, 3) == pytest.approx(2 / 3)
    assert share_above_constant(6, 6, 3) == 1


@pytest.mark.parametrize(
    ("given", "credit"),
    [
        ([0, 1, 2, 3], 1),
        ([1, 0, 2, 3], 1 - 2 / 6),
        ([1, 0, 3, 2], 1 - 4 / 6),
        ([3, 2, 1, 0], 0),
    ],
)
def test_order_earns_by_the_pairs_that_stand_right(given, credit):
    assert order_credit(given, [[0, 1, 2, 3]]) == pytest.approx(credit)


def test_the_nearest_valid_order_counts():
    assert order_credit([1, 0, 2], [[0, 1, 2], [1, 0, 2]]) == 1


@pytest.mark.parametrize(
    ("given", "key", "relative", "absolute", "accepted"),
    [
        (112, 112, 0, 0, True),
        (113.12, 112, 0.01, 0, True),
        (113.2, 112, 0.01, 0, False),
        (112.5, 112, 0, 0.5, True),
        (114, 112, 0.01, 0.9, True),
        (-112, 112, 0.01, 0, False),
        (0.1 + 0.2, 0.3, 0, 0, True),
    ],
)
def test_tolerances_add_up(given, key, relative, absolute, accepted):
    assert AnswerTolerance(relative, absolute).accepts(given, key) is accepted


@pytest.mark.parametrize(
    ("given", "digits", "accepted"),
    [
        (15.8, 3, True),
        (15.79, 3, True),
        (15.7, 3, False),
        (16, 2, True),
        (15, 2, False),
        (15.789, 5, True),
        (15.85, 3, False),
    ],
)
def test_significant_digits_of_15_789(given, digits, accepted):
    assert AnswerTolerance(significant=digits).accepts(given, 15.789473) is accepted


@pytest.mark.parametrize(
    ("credits", "points"),
    [
        ([1], 1),
        ([0, 1], 0.5),
        ([0, 0, 1], 0.25),
        ([0.5, 1], 0.5),
        ([0.8, 1], 0.8),
        ([0.5, 0], 0.5),
        ([], 0),
        ([0, 0, 0, 0, 1], 0.25),
    ],
)
def test_later_tries_count_less_and_never_lower_a_score(credits, points):
    assert retry_points(credits) == pytest.approx(points)


def test_guessing_is_taken_out():
    assert corrected_score([(True, 4)] * 6 + [(False, 4)] * 4) == pytest.approx(7 / 15)
    assert corrected_score([(True, 4)] + [(False, 4)] * 3) == 0
    assert corrected_score([(True, 4), (None, 4)]) == 0.5
    assert corrected_score([(True, 2), (False, 3)]) == pytest.approx(0.25)
    assert corrected_score([]) is None


def test_wilson_interval_of_seven_in_ten():
    low, high = wilson_interval(7, 10)
    assert low == pytest.approx(0.3968, abs=1e-4)
    assert high == pytest.approx(0.8922, abs=1e-4)
    assert wilson_interval(0, 0) == (0, 1)
    low, high = wilson_interval(0, 5)
    assert low == 0
    assert high == pytest.approx(0.4345, abs=1e-4)
