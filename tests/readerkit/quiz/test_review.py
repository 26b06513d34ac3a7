"""When questions come back, replayed from the answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from readerkit.quiz.history_messages import DueQuestion
from readerkit.quiz.history_rows import AnswerRow, timestamp
from readerkit.quiz.spaced_repetition import due_questions
from tests.readerkit.quiz.test_history import ANSWER

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def answer(name: str, credit: float, days: float = 0, **more) -> AnswerRow:
    moment = timestamp(NOON + timedelta(days=days))
    session = more.pop("session", f"{name}{days}")
    return replace(
        ANSWER, question=name, credit=credit, answered=moment, session=session, **more
    )


def due(*answers: AnswerRow, now: float = 999) -> dict[str, float]:
    """Return the days from noon to when each question is due."""
    found = due_questions(answers, NOON + timedelta(days=now))
    return {each.question: (each.moment - NOON) / timedelta(days=1) for each in found}


def test_mistake_is_due_the_next_day():
    assert due(answer("a", 0)) == {"a": 1}


def test_right_answer_is_due_later_than_a_hard_one_than_a_mistake():
    hard = [answer("h", 0), replace(answer("h", 1), attempt=2)]
    days = due(answer("g", 1), *hard, answer("w", 0))
    assert days["w"] <= days["h"] < days["g"]
    assert list(days) == ["w", "h", "g"]


def test_each_right_answer_moves_the_next_one_further_out():
    first = due(answer("a", 1))["a"]
    second = due(answer("a", 1), answer("a", 1, days=first))["a"] - first
    assert second > 2 * first


def test_mistake_after_success_brings_it_back_at_once():
    days = due(answer("a", 1), answer("a", 0, days=3))["a"]
    assert days == 4


def test_what_a_wrong_clock_dated_ahead_is_no_later_answer():
    ahead = answer("a", 1, days=30)
    assert due(ahead, answer("a", 0), now=0) == {"a": 1}
    assert due(ahead, answer("a", 0), now=31)["a"] > 31, "it may be so by then"


def test_what_a_wrong_clock_alone_has_answered_is_due():
    assert due(answer("a", 1, days=300), now=2) == {"a": 2}
    assert due(answer("a", 1, days=300), now=301)["a"] > 301


def test_same_answers_give_the_same_dates():
    answers = [answer(name, i % 2, days=i / 7) for i, name in enumerate("abcdefg")]
    assert due(*answers) == due(*reversed(answers))


def test_dates_are_utc():
    [due] = due_questions([answer("a", 0)], NOON)
    assert due.told(NOON) == DueQuestion("a", "2026-03-02T12:00:00+00:00", False, True)
    assert due.told(due.moment).due_now
