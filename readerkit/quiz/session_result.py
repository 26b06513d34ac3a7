"""What a quiz came to so far: its standing, its score, the marks of an exam."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import asdict, replace

from readerkit.quiz.messages import MarkedAnswer, Score, Standing
from readerkit.quiz.report import QuestionOutcome, outcomes, scored, unanswered
from readerkit.quiz.session_state import SessionState
from readerkit.quiz.variant import WHOLE, all_said


def result_of(session: SessionState) -> Score:
    """Return the score so far; an exam counts what nobody answered as lost.

    What was skipped is lost at the end; before that it says nothing. A verdict
    stands there after all of an exam, or of the questions; with an exam's verdict,
    once its time or its questions are over, every answer and its key.
    """
    found = _outcomes(session)
    is_part = not session.is_exam and session.position < len(session.row.questions)
    score = scored(session.bank, found, is_part=is_part, standing=standing_of(session))
    if session.is_exam and session.is_over:
        return replace(score, marked=tuple(_marked(session)))
    return score


def standing_of(session: SessionState) -> Standing:
    """Return where a quiz stands, without a word on points."""
    return Standing(
        complete=session.is_over,
        session=session.row.id,
        seed=session.told_seed,
        mode=session.row.mode,
        official=session.is_official,
        answered=session.answered,
        of=len(session.row.questions),
    )


def _outcomes(session: SessionState) -> list[QuestionOutcome]:
    """Return the outcome of each question that counts."""
    found = outcomes(session.history.answers(session.row.id))
    if session.is_exam:
        names = enumerate(session.row.questions)
        missing = [name for at, name in names if at not in session.credits]
        found += unanswered(session.bank, missing)
    return found


def _marked(session: SessionState) -> Iterator[MarkedAnswer]:
    """Yield every answer with its mark and explanation: the end of an exam."""
    for answer in session.history.answers(session.row.id):
        variant = session.variant(answer.position)
        yield MarkedAnswer(
            **asdict(answer),
            prompt=variant.prompt.prompt,
            right=answer.credit >= WHOLE,
            remarks=all_said(variant, answer.answer),
            **asdict(variant.told),
        )
