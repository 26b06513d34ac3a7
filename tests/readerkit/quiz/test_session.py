"""A quiz from start to end: tries, exams, resuming, deadlines, results."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs
from msgspec.json import decode

from readerkit.errors import ReaderkitError
from readerkit.quiz.history import History
from readerkit.quiz.history_rows import timestamp
from readerkit.quiz.messages import DoneResult, Recorded, Score, Standing, encode
from readerkit.quiz.prompts import (
    FillPrompt,
    LocatePrompt,
    MatchPrompt,
    MultiplePrompt,
    NumericPrompt,
    OrderPrompt,
    PredictPrompt,
    ShortPrompt,
    SinglePrompt,
    SketchPrompt,
)
from readerkit.quiz.report import exported, summary
from readerkit.quiz.selection import choose_questions
from readerkit.quiz.session import Session
from readerkit.quiz.variant import AnswerError
from tests.readerkit.quiz.sample import sample_bank

PROMPTS = (
    SinglePrompt
    | MultiplePrompt
    | NumericPrompt
    | OrderPrompt
    | MatchPrompt
    | FillPrompt
    | LocatePrompt
    | PredictPrompt
    | SketchPrompt
    | ShortPrompt
)
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def history(tmp_path):
    return History(tmp_path / "quiz.sqlite3")


def start(history, clock, *questions, mode="practice", **options):
    return Session.start(
        sample_bank(),
        history,
        questions=questions,
        seed=5,
        mode=mode,
        clock=clock,
        **options,
    )


def key(session):
    return session.variant().typed_key


def same(message):
    """Return a message after its way through JSON."""
    assert decode(encode(message), type=type(message)) == message
    return message


def test_every_message_is_read_from_its_json_as_it_was(history, clock):
    session = start(history, clock, *sample_bank().questions)
    same(session.begun())
    while (question := session.question()) is not None:
        assert decode(encode(question), type=PROMPTS) == question
        same(session.skip() if question.id == "line" else session.answer(key(session)))
    result = same(session.finish())
    assert (result.complete, result.passed, result.questions) == (True, True, 10)
    same(summary(history, now=timestamp(clock.now)))
    same(exported(history, "9"))


def test_answer_is_on_disk_before_its_result_is_known(history, clock, tmp_path):
    session = start(history, clock, "bytes")
    session.question()
    session.answer("84")
    other = History(tmp_path / "quiz.sqlite3")
    [kept] = other.answers()
    assert (kept.answer, kept.credit, kept.question) == ("84", 0, "bytes")


def test_answer_that_cannot_be_read_is_not_kept(history, clock):
    session = start(history, clock, "bytes")
    with pytest.raises(AnswerError):
        session.answer("plenty")
    assert history.answers() == []
    assert session.question().attempt == 1


def test_second_try_is_worth_half_and_the_key_waits_for_the_end(history, clock):
    session = start(history, clock, "bytes")
    first = session.answer("84")
    assert not first.right
    assert not first.done
    assert first.tries_left == 1
    assert "master copy" in first.remarks[0].text
    assert not isinstance(first, DoneResult)
    assert session.question().attempt == 2
    second = session.answer("112")
    assert second.done
    assert second.points == 0.5
    assert second.solution == "112 GB"
    assert second.references[0].title == "A paper"
    assert session.result().score == 0.5


def test_retry_never_lowers_a_score(history, clock):
    session = start(history, clock, "several")
    labels = key(session).split()
    assert session.answer(labels[0]).points == 0.5
    wrong = next(label for label in "abcd" if label not in labels)
    assert session.answer(wrong).points == 0.5


def test_skipped_question_stays_skipped_in_a_quiz_that_is_resumed(history, clock):
    session = start(history, clock, "bytes", "pick")
    session.skip()
    again = Session.resume(session.bank, history, session.row, clock=clock)
    assert again.question().id == "pick"


def test_time_taken_counts_from_when_the_question_was_shown(history, clock):
    session = start(history, clock, "bytes")
    clock.now += timedelta(seconds=9)
    again = Session.resume(session.bank, history, session.row, clock=clock, shown=NOW)
    again.answer("112")
    assert [answer.seconds for answer in history.answers()] == [9]


def test_skipped_question_is_done_and_explained(history, clock):
    session = start(history, clock, "bytes", "gap")
    result = session.skip()
    assert result.done
    assert result.solution == "112 GB"
    assert session.question().id == "gap"


BOUNDED = "The bytes of a rank are bounded."


@pytest.mark.parametrize(
    ("mode", "answer", "kept", "credit"),
    [
        ("practice", BOUNDED, f"(found 1) :: {BOUNDED}", 0.5),
        ("practice", f"1 2 :: {BOUNDED}", f"1 2 (found 1) :: {BOUNDED}", 1),
        ("practice", f"0 :: {BOUNDED}", f"0 (found 1) :: {BOUNDED}", 0),
        ("exam", f"1 2 :: {BOUNDED}", f"(found 1) :: {BOUNDED}", 0.5),
    ],
)
def test_text_is_kept_with_what_was_found_and_what_its_reader_says(
    history, clock, mode, answer, kept, credit
):
    session = start(history, clock, "essay", mode=mode)
    assert session.answer(answer).done, "the points are out: there is no second try"
    [row] = history.answers()
    assert (row.answer, row.credit) == (kept, credit)
    assert session.variant(0).grade(kept).credit == credit
    assert session.finish().free_text.points == credit


def test_text_is_looked_at_in_practice_alone(history, clock):
    found = start(history, clock, "essay").look(BOUNDED).points
    assert [(point.found, point.words) for point in found] == [
        (True, BOUNDED),
        (False, ""),
    ]
    assert not history.answers()
    for name, mode in (("essay", "exam"), ("gap", "practice")):
        with pytest.raises(AnswerError):
            start(history, clock, name, mode=mode).look(BOUNDED)


def test_exam_says_nothing_until_the_end(history, clock):
    session = start(history, clock, "bytes", "gap", mode="exam")
    assert same(session.answer("84")) == Recorded(position=1, done=True)
    assert session.question().id == "gap"
    session.answer("no_sync")
    assert session.question() is None
    result = session.finish()
    assert result.score == 0.5
    assert not result.passed
    marked = same(result).marked
    assert [row.right for row in marked] == [False, True]
    assert marked[0].solution == "112 GB"


def test_exam_counts_what_nobody_answered(history, clock):
    session = start(history, clock, "bytes", "gap", "row", mode="exam")
    session.answer("112")
    assert session.result().score == pytest.approx(1 / 3)
    assert session.result().questions == 3


def test_exam_that_is_left_tells_no_points(history, clock):
    session = start(history, clock, "bytes", "gap", mode="exam", minutes=10)
    session.answer("112")
    assert same(session.standing()) == Standing(
        complete=False,
        session=session.row.id,
        seed=None,
        mode="exam",
        official=False,
        answered=1,
        of=2,
    )
    told = summary(history, now=timestamp(clock.now))
    assert (told.quizzes, told.topics) == ((), {})
    clock.now += timedelta(minutes=11)
    assert session.is_over
    [told] = summary(history, now=timestamp(clock.now)).quizzes
    assert told.score == 0.5


def test_practice_that_is_left_tells_points_once_there_are_some(history, clock):
    session = start(history, clock, "bytes", "gap")
    assert not isinstance(session.standing(), Score)
    session.answer("112")
    assert session.standing().score == 1


def test_practice_counts_what_was_answered(history, clock):
    session = start(history, clock, "bytes", "gap", "row")
    session.answer("112")
    assert session.result().score == 1
    assert session.result().questions == 1


def test_a_question_that_was_left_after_a_wrong_try_was_not_answered(history, clock):
    session = start(history, clock, "row", "bytes")
    session.answer("F0 F1 F2")
    assert (session.answered, session.can_go_on) == (0, True)
    assert not isinstance(session.standing(), Score)
    session.answer("F0 F1 B0")
    session.answer("84")
    assert (session.answered, session.result().questions) == (1, 1)
    session.skip()
    assert (session.answered, session.result().questions) == (2, 2)


def test_exam_lasts_no_longer_where_the_clock_is_set_back(history, clock):
    session = start(history, clock, "bytes", "gap", mode="exam", minutes=10)
    clock.now -= timedelta(hours=1)
    assert session.time_left() == 600
    assert session.question().seconds_left == 600


def test_tries_stay_in_their_order_where_the_clock_is_set_back(history, clock):
    session = start(history, clock, "grid", tries=3)
    session.answer("row 1x1\nrow 8x16")
    clock.now -= timedelta(days=9)
    session.answer("column 1x1\nrow 8x16")
    again = Session.resume(session.bank, history, session.row, clock=clock)
    assert again.question().given == ("column 1x1", "row 8x16")
    assert again.credits == session.credits


def test_deadline_ends_the_quiz(history, clock):
    session = start(history, clock, "bytes", "gap", mode="exam", minutes=10)
    session.answer("112")
    assert session.time_left() == 600
    clock.now += timedelta(minutes=11)
    assert session.question() is None
    with pytest.raises(ReaderkitError, match="time is over"):
        session.answer("no_sync")
    assert len(history.answers()) == 1


@pytest.mark.parametrize(
    ("mode", "minutes", "goes_on"),
    [("practice", 0, False), ("exam", 9, True), ("exam", 11, False)],
)
def test_without_an_answer_an_exam_alone_goes_on_until_its_time_is_over(
    history, clock, mode, minutes, goes_on
):
    session = start(history, clock, "bytes", "gap", mode=mode, minutes=10)
    clock.now += timedelta(minutes=minutes)
    assert session.can_go_on == goes_on


def test_deadline_does_not_move_when_resumed(history, clock):
    session = start(history, clock, "bytes", "gap", mode="exam", minutes=10)
    session.answer("112")
    clock.now += timedelta(minutes=6)
    again = Session.resume(
        sample_bank(), history, history.unfinished(7, "2026"), clock=clock
    )
    assert again.time_left() == 240


def test_resumed_quiz_goes_on_where_it_was_left(history, clock):
    session = start(history, clock, "gap", "row", "bytes")
    session.answer("no_sync")
    session.answer("F0 F1 F2")
    before = session.question()
    again = Session.resume(
        sample_bank(), history, history.unfinished(7, "2026"), clock=clock
    )
    assert again.question() == before
    assert again.question().attempt == 2
    again.answer("F0 F1 B0")
    again.answer("112")
    assert again.finish().points == pytest.approx(1 + 2 / 3 + 1, abs=1e-3)
    assert history.unfinished(7, "2026") is None


def test_quiz_over_a_changed_bank_is_not_resumed(history, clock):
    session = start(history, clock, "gap", "row")
    session.answer("no_sync")
    row = history.unfinished(7, "2026")
    bank = sample_bank()
    changed = replace(bank, rules=structs.replace(bank.rules, version=2))
    with pytest.raises(ReaderkitError, match="bank has changed"):
        Session.resume(changed, history, row, clock=clock)


def test_answer_from_two_places_counts_once(history, clock):
    session = start(history, clock, "gap", "row")
    twin = Session(sample_bank(), history, session.row, clock=clock)
    session.answer("no_sync")
    with pytest.raises(ReaderkitError, match="somewhere else"):
        twin.answer("no_grad")
    assert len(history.answers()) == 1


def test_result_has_topics_intervals_and_what_to_read(history, clock):
    session = start(history, clock, "pick", "bytes")
    wrong = next(label for label in "abc" if label != key(session))
    session.answer(wrong)
    session.answer(next(label for label in "abc" if label not in (wrong, key(session))))
    session.answer("112")
    result = session.finish()
    assert result.score == 0.5
    assert result.choice_questions == 1
    assert result.choice_corrected == pytest.approx(-0.5)
    topic = result.topics["all"]
    assert topic.questions == 2
    assert 0 < topic.interval[0] < 0.5 < topic.interval[1] < 1
    [read] = result.read_next
    assert read.command == "readerkit annotate close"
    assert read.place == "a.py:3-5"


def test_choice_of_questions_follows_the_seed():
    bank = sample_bank()
    drawn = {choose_questions(bank, seed=3, count=6) for _ in range(3)}
    assert len(drawn) == 1
    others = {choose_questions(bank, seed=seed, count=6) for seed in range(20)}
    assert len(others) > 10


def test_choice_of_questions_is_spread_over_objectives():
    bank = sample_bank()
    for seed in range(20):
        chosen = choose_questions(bank, seed=seed, count=4)
        asked = Counter(bank.questions[name].objective for name in chosen)
        assert asked == {"one": 2, "two": 2}
        assert len(set(chosen)) == 4


def test_choice_of_questions_keeps_to_topic_and_bank():
    bank = sample_bank()
    assert len(choose_questions(bank, seed=0, count=99)) == 10
    among = choose_questions(bank, seed=0, count=9, among=["gap", "row"])
    assert set(among) == {"gap", "row"}
