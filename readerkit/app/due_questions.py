"""When answered questions come back, as often as the reader wants."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from readerkit.errors import ReaderkitError, WrongUseError
from readerkit.quiz.bank import Bank
from readerkit.quiz.history import History
from readerkit.quiz.history_messages import ListedQuestion
from readerkit.quiz.history_rows import timestamp
from readerkit.quiz.selection import WantedQuiz, matching, suspended
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.quiz.spaced_repetition import Due

RETENTION, DAILY = "READERKIT_RETENTION", "READERKIT_DAILY"


def list_bank(
    bank: Bank,
    history: History,
    wanted: WantedQuiz,
    moment: datetime,
    *,
    flagged: bool = False,
) -> list[ListedQuestion]:
    """Return the questions that are of what a reader wants, in the bank's order."""
    coming = coming_back(history, moment)
    due = {each.question: each.told(moment) for each in coming}
    asked, aside = matching(bank, wanted), suspended(history)
    words: dict[str, list[str]] = {}
    for flag in history.flags():
        words.setdefault(flag.question, []).append(flag.words)
    listed = [
        ListedQuestion(
            *(each.id, each.type, each.topic, each.objective, each.difficulty),
            " ".join(each.prompt.split()),
            due[each.id].due if each.id in due else "",
            each.id in due and due[each.id].due_now and each.id not in aside,
            each.id in aside,
            tuple(words.get(each.id, ())),
            each.asks,
        )
        for each in bank.questions.values()
        if each.id in asked and (each.id in words or not flagged)
    ]
    return [each for each in listed if each.due_now or not wanted.due]


def coming_back(history: History, moment: datetime) -> list[Due]:
    """Return when each answered question is due, as often as the reader wants.

    Raises:
        ReaderkitError: a retention that none can be.
    """
    from readerkit.quiz.spaced_repetition import (
        due_questions,  # fsrs takes a while to import
    )

    answers = history.told_answers(timestamp(moment))
    return due_questions(answers, moment, retention=_setting(RETENTION, 0.9, 0.7, 0.97))


def _setting(name: str, usual: float, least: float, most: float) -> float:
    """Return a number that the environment may set.

    Raises:
        ReaderkitError: something else, or out of its bounds.
    """
    given = os.environ.get(name, "")
    with suppress(ValueError):
        if least <= (number := float(given or usual)) <= most:
            return number
    raise WrongUseError(f"{name}: got '{given}', expected {least:g} to {most:g}")


def within_day(
    ready: tuple[str, ...], history: History, moment: datetime
) -> tuple[str, ...]:
    """Return those of the questions that are due which the day still has room for.

    Raises:
        ReaderkitError: the day had as many as the reader wants.
    """
    limit = int(_setting(DAILY, 0, 0, 9999))
    if not limit:
        return ready
    today = moment.astimezone().date()
    reviews = {row.id for row in history.sessions() if row.mode == "review"}
    done = {
        (row.session, row.position)
        for row in history.answers()
        if row.session in reviews
        and datetime.fromisoformat(row.answered).astimezone().date() == today
    }
    if len(done) >= limit:
        raise ReaderkitError(
            f"{len(ready)} due, and all wait for tomorrow: {DAILY} is {limit} a day, "
            f"and {len(done)} were answered"
        )
    return ready[: limit - len(done)]


def due_now(
    bank: Bank, history: History, among: set[str], moment: datetime
) -> tuple[str, ...]:
    """Return the questions that are due, the longest first.

    Raises:
        ReaderkitError: none is.
    """
    coming = [each for each in coming_back(history, moment) if each.question in among]
    ready = tuple(each.question for each in coming if each.moment <= moment)
    if not ready:
        after = f"nothing was answered yet: {typed('quiz', str(bank.rules.phase))}"
        if coming:
            after = f"the next is due on {coming[0].moment:%Y-%m-%d %H:%M} UTC"
        raise ReaderkitError(f"nothing is due: {after}")
    return ready
