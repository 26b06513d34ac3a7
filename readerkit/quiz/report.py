"""From answers to a result: the score, the same without luck, topics, what to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from readerkit.quiz.bank import Bank
from readerkit.quiz.history import AnswerRow, History
from readerkit.quiz.kinds.base import WHOLE
from readerkit.quiz.scoring import corrected_score, retry_points, wilson_interval
from readerkit.wording.next_command import typed


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """One question of a quiz, all tries at it together."""

    question: str
    topic: str
    objective: str
    points: float
    is_right: bool
    """At the first try."""
    choices: int | None
    answered: str
    """When it was last tried; empty where it never was."""
    is_left_out: bool = False


def outcomes(answers: Iterable[AnswerRow]) -> list[QuestionOutcome]:
    """Return one outcome for each question of each session, the oldest first."""
    tries: dict[tuple[str, int], list[AnswerRow]] = {}
    for answer in answers:
        tries.setdefault((answer.session, answer.position), []).append(answer)
    found = []
    for rows in tries.values():
        rows.sort(key=lambda row: row.attempt)
        first = rows[0]
        found.append(
            QuestionOutcome(
                first.question,
                first.topic,
                first.objective,
                retry_points([row.credit for row in rows]),
                first.credit >= WHOLE,
                first.choices,
                rows[-1].answered,
                not first.answer,
            )
        )
    return found


def unanswered(bank: Bank, questions: Iterable[str]) -> list[QuestionOutcome]:
    """Return outcomes without points, for what an exam asked and nobody answered."""
    chosen = [bank.questions[name] for name in questions]
    return [
        QuestionOutcome(each.id, each.topic, each.objective, 0.0, False, None, "")
        for each in chosen
    ]


def score(results: list[QuestionOutcome], pass_mark: float) -> dict[str, Any]:
    """Return the result of a quiz as JSON values."""
    points, count = sum(each.points for each in results), len(results)
    choice = [(_mark(each), each.choices) for each in results if each.choices]
    return {
        "questions": count,
        "points": round(points, 3),
        "score": points / count if count else 0.0,
        "interval": list(wilson_interval(points, count)),
        "pass_mark": pass_mark,
        "passed": count > 0 and points / count >= pass_mark - 1e-9,
        "choice_questions": len(choice),
        "choice_corrected": corrected_score(choice),
        "topics": by_group(results, lambda each: each.topic),
    }


def _mark(outcome: QuestionOutcome) -> bool | None:
    return None if outcome.is_left_out else outcome.is_right


def by_group(results: list[QuestionOutcome], key: Any) -> dict[str, dict[str, Any]]:
    """Return points, number and 95% interval for each group of outcomes."""
    groups: dict[str, list[float]] = {}
    for each in results:
        groups.setdefault(key(each), []).append(each.points)
    return {
        name: {
            "questions": len(points),
            "points": round(sum(points), 3),
            "score": sum(points) / len(points),
            "interval": list(wilson_interval(sum(points), len(points))),
        }
        for name, points in groups.items()
    }


def read_next(
    bank: Bank, results: list[QuestionOutcome], limit: int = 5
) -> list[dict[str, Any]]:
    """Return where to read after a quiz: the lines behind the points that were lost."""
    lost: dict[str, float] = {}
    for each in results:
        question = bank.questions.get(each.question)
        if question is None or each.points >= WHOLE:
            continue
        for note in question.all_notes() or [""]:
            if note:
                lost[note] = lost.get(note, 0.0) + 1 - each.points
    best = sorted(lost, key=lambda note: (-lost[note], note))[:limit]
    found: list[Mapping[str, Any]] = []
    for note in best:
        place = bank.keys.places[f"note:{note}"]
        found.append(
            {
                "note": note,
                "title": place.title,
                "place": str(place),
                "command": typed("annotate", note),
            }
        )
    return [dict(each) for each in found]


def history_values(history: History, *, now: str) -> dict[str, Any]:
    """Return the quizzes and topics of a history as JSON values."""
    answers = history.told_answers(now)
    quizzes = []
    for row in history.sessions():
        found = outcomes(each for each in answers if each.session == row.id)
        if found:
            points = sum(each.points for each in found)
            count = len(row.questions) if row.mode == "exam" else len(found)
            quizzes.append(
                {
                    "id": row.id,
                    "phase": row.phase,
                    "mode": row.mode,
                    "started": row.started,
                    "ended": row.ended,
                    "questions": count,
                    "score": points / count,
                }
            )
    return {"quizzes": quizzes, "topics": mastery(answers)}


def mastery(answers: Iterable[AnswerRow]) -> dict[str, dict[str, Any]]:
    """Return each topic's state from the latest outcome of each of its questions."""
    latest = {each.question: each for each in outcomes(answers)}
    return by_group(list(latest.values()), lambda each: each.topic)
