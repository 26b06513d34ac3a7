"""Statistics of questions: against numbers by hand, and silent where they are few."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from readerkit.quiz.item_statistics import ItemStatistics, item_statistics
from tests.readerkit.quiz.test_history import ANSWER


@dataclass(frozen=True)
class Taken:
    """A quiz of four questions: the first one is looked at."""

    right: bool
    rest: int
    seconds: float = 10


def answers(*quizzes: Taken):
    for number, quiz in enumerate(quizzes):
        marks = [quiz.right, *(at < quiz.rest for at in range(3))]
        for position, is_right in enumerate(marks):
            yield replace(
                ANSWER,
                session=f"s{number}",
                position=position,
                question=("looked-at", "b", "c", "d")[position],
                credit=float(is_right),
                answer="x",
                seconds=quiz.seconds,
            )


def of(*quizzes: Taken) -> ItemStatistics:
    [found] = item_statistics(["looked-at"], answers(*quizzes))
    return found


def test_nothing_is_claimed_of_few_answers():
    few = of(*[Taken(True, 3)] * 4)
    assert (few.answers, few.right, few.interval, few.seconds) == (4, None, None, None)
    some = of(*[Taken(True, 3)] * 6)
    assert (some.right, some.seconds, some.discrimination) == (1, 10, None)
    [none] = item_statistics(["never-asked"], answers(Taken(True, 3)))
    assert none.answers == none.pairs == 0


@pytest.mark.parametrize(
    ("quizzes", "expected"),
    [
        ([Taken(True, 3)] * 5 + [Taken(False, 0)] * 5, 1.0),
        ([Taken(True, 0)] * 5 + [Taken(False, 3)] * 5, -1.0),
        ([Taken(True, 3), Taken(False, 3)] * 5, None),  # the rest never varies
        ([Taken(True, 3)] * 10, None),  # nor does the question
        # (M1 - M0)/s·sqrt(pq) of thirds 3 3 3 1 2 | 1 1 2 0 3: (12/5 - 7/5)/1.044·0.5
        (
            [Taken(True, n) for n in (3, 3, 3, 1, 2)]
            + [Taken(False, n) for n in (1, 1, 2, 0, 3)],
            0.482,
        ),
    ],
)
def test_discrimination_is_the_point_biserial_with_the_rest(quizzes, expected):
    found = of(*quizzes)
    assert found.pairs == 10
    assert found.discrimination == (
        None if expected is None else pytest.approx(expected, abs=0.02)
    )


def test_time_is_the_median_and_the_hardest_come_first():
    quizzes = [Taken(False, 3, seconds) for seconds in (1, 2, 3, 4, 100)]
    names = ["b", "looked-at", "never-asked"]
    found = item_statistics(names, answers(*quizzes))
    assert [each.id for each in found] == ["looked-at", "b", "never-asked"]
    assert found[0].seconds == 3
