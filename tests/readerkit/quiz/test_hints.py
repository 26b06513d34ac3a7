"""Hints: what to read, then a step; never the key, and paid for."""

from __future__ import annotations

import pytest

from readerkit.app.quiz_banks import QuizBanks
from readerkit.quiz.hints import hints
from readerkit.quiz.history import History
from readerkit.quiz.kinds.choice import AskedChoice
from readerkit.quiz.kinds.short import AskedShort
from readerkit.quiz.kinds.sketch import AskedSketch
from readerkit.quiz.messages import DoneResult, Hint
from readerkit.quiz.session import Session
from readerkit.quiz.variant import AnswerError
from tests.readerkit.quiz.sample import sample_bank
from tests.readerkit.quiz.test_session import Clock, start

pytestmark = pytest.mark.sampled

BANK = QuizBanks.at(None).bank(35)


@pytest.fixture
def history(tmp_path):
    return History(tmp_path / "quiz.sqlite3")


def is_right(variant, text: str) -> bool:
    try:
        return variant.grade(text).is_right
    except AnswerError:
        return False


def told_by(variant, text: str) -> list[str]:
    """Return the parts of a text that would earn all credit as they stand."""
    words = text.split()
    if isinstance(variant, AskedChoice):
        right = [each.text for each in variant.options.values() if each.right]
        return [each for each in right if each.casefold() in text.casefold()]
    if isinstance(variant, AskedShort):
        return [each.says for each in variant.finding(text).points if each.found]
    if isinstance(variant, AskedSketch):
        return [" ".join(row) for _, row in variant.rows if " ".join(row) in text]
    ends = range(1, len(words) + 1)
    spans = {" ".join(words[first:end]) for end in ends for first in range(end)}
    return [each for each in spans if is_right(variant, each)]


@pytest.mark.parametrize("topic", BANK.topics())
def test_no_hint_of_the_bank_shows_the_key(topic):
    asked = [each for each in BANK.questions.values() if each.topic == topic]
    for question in asked:
        for seed in range(3):
            variant = BANK.variant(question.id, seed)
            for hint in hints(variant):
                assert told_by(variant, hint.text) == [], (question.id, hint.text)


@pytest.mark.parametrize("question", ["pick", "bytes", "line", "steps", "row"])
def test_each_hint_costs_what_was_said_and_survives(history, question):
    clock = Clock()
    session = start(history, clock, question)
    left, number = 1.0, 0
    while (cost := session.question().hint_costs) is not None:
        hint = session.hint()
        assert isinstance(hint, Hint) and hint.cost == cost
        left, number = left - cost, number + 1
        session = Session.resume(sample_bank(), history, session.row, clock=clock)
        assert session.question().hints[-1] == hint.text
    with pytest.raises(AnswerError):
        session.hint()
    assert history.unfinished(7, "2026") == session.row, (
        "a hint alone is worth going on with"
    )
    done = session.answer(session.variant().typed_key)
    assert isinstance(done, DoneResult) and done.right
    assert done.points == pytest.approx(left) == session.finish().points
    [kept] = history.answers()
    assert number > 0 and kept.hinted == pytest.approx(1 - left)


def test_hint_lowers_nothing_that_was_reached_before(history):
    session = start(history, Clock(), "several")
    first, *_ = session.variant().typed_key.split()
    before = session.answer(first).points
    session.hint()
    assert before > 0 and session.skip().points == before


def test_exam_gives_no_hints(history):
    session = start(history, Clock(), "pick", mode="exam")
    assert session.question().hint_costs is None
    with pytest.raises(AnswerError, match="exam"):
        session.hint()
    assert history.hints() == []
