"""From answers to a result: the score, the same without luck, topics, what to read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec import UNSET
from msgspec.structs import asdict

from readerkit.quiz.bank import Bank
from readerkit.quiz.history import History
from readerkit.quiz.history_messages import (
    DueQuestion,
    HistoryExport,
    HistorySummary,
    QuizTaken,
)
from readerkit.quiz.history_rows import MIGRATIONS, AnswerRow
from readerkit.quiz.messages import NextNote, ObjectiveShare, Score, Share, Standing
from readerkit.quiz.scoring import corrected_score, retry_points, wilson_interval
from readerkit.quiz.variant import WHOLE
from readerkit.wording.next_command import typed

FREE_TEXT = {"short"}
"""Types of which a second try would be worth nothing: the points are out."""
_MOST_NOTES = 5
"""Notes that are named to be read after a quiz."""


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
    found = []
    for rows in tries(answers):
        first = rows[0]
        found.append(
            QuestionOutcome(
                first.question,
                first.topic,
                first.objective,
                retry_points(
                    [row.credit for row in rows], [row.hinted for row in rows]
                ),
                first.credit >= WHOLE,
                first.choices,
                rows[-1].answered,
                not first.answer,
            )
        )
    return found


def tries(answers: Iterable[AnswerRow]) -> list[list[AnswerRow]]:
    """Return the tries at each question of each session, in their order."""
    groups: dict[tuple[str, int], list[AnswerRow]] = {}
    for answer in answers:
        groups.setdefault((answer.session, answer.position), []).append(answer)
    return [sorted(rows, key=lambda row: row.attempt) for rows in groups.values()]


def unanswered(bank: Bank, questions: Iterable[str]) -> list[QuestionOutcome]:
    """Return outcomes without points, for what an exam asked and nobody answered."""
    chosen = [bank.questions[name] for name in questions]
    return [
        QuestionOutcome(each.id, each.topic, each.objective, 0.0, False, None, "")
        for each in chosen
    ]


def scored(
    bank: Bank, found: list[QuestionOutcome], *, is_part: bool, standing: Standing
) -> Score:
    """Return the result of a quiz; of a part of it without a verdict."""
    results = [each for each in found if not (is_part and each.is_left_out)]
    whole, pass_mark = share_of(results), bank.rules.pass_mark
    objectives = by_objective(bank, results)
    choice = [
        (None if each.is_left_out else each.is_right, each.choices)
        for each in results
        if each.choices
    ]
    return Score(
        **asdict(standing),
        **asdict(whole),
        pass_mark=pass_mark,
        passed=UNSET if is_part else bool(results) and whole.score >= pass_mark - 1e-9,
        choice_questions=len(choice),
        choice_corrected=corrected_score(choice),
        topics=by_group(results, lambda each: each.topic),
        objectives=objectives,
        free_text=_free_text(bank, results),
        missed=tuple(name for name, each in objectives.items() if not each.points),
        read_next=tuple(read_next(bank, found)),
    )


def _free_text(bank: Bank, results: Iterable[QuestionOutcome]) -> Share | None:
    """Return the share of texts to write, in which the machine found the points."""
    kinds = {name: each.type for name, each in bank.questions.items()}
    found = [each for each in results if kinds.get(each.question) in FREE_TEXT]
    return share_of(found) if found else None


def share_of(results: list[QuestionOutcome]) -> Share:
    """Return the points of outcomes with a 95% interval around their share."""
    points, count = sum(each.points for each in results), len(results)
    share = points / count if count else 0.0
    return Share(count, round(points, 3), share, wilson_interval(points, count))


def by_group(
    results: Iterable[QuestionOutcome], key: Callable[[QuestionOutcome], str]
) -> dict[str, Share]:
    """Return the share of each group of outcomes."""
    groups: dict[str, list[QuestionOutcome]] = {}
    for each in results:
        groups.setdefault(key(each), []).append(each)
    return {name: share_of(group) for name, group in groups.items()}


def by_objective(
    bank: Bank, results: Iterable[QuestionOutcome]
) -> dict[str, ObjectiveShare]:
    """Return the share of each objective that was asked for, in the bank's order."""
    found, phase = by_group(results, lambda each: each.objective), bank.rules.phase
    return {
        name: ObjectiveShare(
            **asdict(found[name]),
            title=objective.title,
            command=typed("quiz", str(phase), "--objective", name),
        )
        for name, objective in bank.objectives.items()
        if name in found
    }


def read_next(bank: Bank, results: list[QuestionOutcome]) -> Iterator[NextNote]:
    """Yield where to read after a quiz: the lines behind the points that were lost."""
    lost: defaultdict[str, float] = defaultdict(float)
    for each in results:
        question = bank.questions.get(each.question)
        if question is not None and each.points < WHOLE:
            for note in question.all_notes():
                lost[note] += 1 - each.points
    for note in sorted(lost, key=lambda note: (-lost[note], note))[:_MOST_NOTES]:
        place = bank.lock.places[f"note:{note}"]
        yield NextNote(note, place.title, str(place), typed("annotate", note))


def summary(
    history: History, *, now: str, due: Iterable[DueQuestion] = ()
) -> HistorySummary:
    """Return what a history tells: its quizzes, and the state of each topic.

    A topic's is from the latest outcome of each of its questions.
    """
    answers = history.told_answers(now)
    quizzes = []
    for row in history.sessions():
        found = outcomes(each for each in answers if each.session == row.id)
        if found:
            count = len(row.questions) if row.mode == "exam" else len(found)
            share = sum(each.points for each in found) / count
            told = (row.id, row.phase, row.mode, row.started, row.ended)
            official = history.is_official(row)
            quizzes.append(QuizTaken(*told, count, share, official))
    latest = {each.question: each for each in outcomes(answers)}
    topics = by_group(latest.values(), lambda each: each.topic)
    return HistorySummary(tuple(quizzes), topics, tuple(due))


def exported(history: History, now: str) -> HistoryExport:
    """Return everything that is kept, but exams that can still be resumed.

    Their seed tells what is asked, and their credits what was right.
    """
    hidden = {row.id for row in history.open_exams(now)}
    return HistoryExport(
        version=len(MIGRATIONS),
        sessions=tuple(row for row in history.sessions() if row.id not in hidden),
        answers=tuple(history.told_answers(now)),
        flags=tuple(history.flags()),
        suspended=tuple(history.suspensions()),
        hints=tuple(row for row in history.hints() if row.session not in hidden),
        damaged=tuple(history.damaged()),  # known once all was read
    )
