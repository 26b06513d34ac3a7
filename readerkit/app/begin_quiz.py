"""Begins a quiz, however it is shown: which questions, under which rules."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from readerkit.errors import ReaderkitError
from readerkit.quiz.bank import Bank
from readerkit.quiz.history import History, timestamp
from readerkit.quiz.session import Session, choose_questions, without_self_marked
from readerkit.wording.meant_name import choose_all
from readerkit.wording.next_command import typed

MAX_SEED = 1_000_000


def now() -> datetime:
    """Return this moment."""
    return datetime.now(UTC)


def begin(
    bank: Bank,
    history: History,
    *,
    topics: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
    due: bool = False,
    count: int | None = None,
    exam: bool = False,
    seed: int | None = None,
    tries: int = 2,
    minutes: float | None = None,
) -> Session:
    """Return a new session, kept in the history.

    Raises:
        ReaderkitError: a topic or an id that the bank does not have, or nothing left.
    """
    chosen_seed = _new_seed() if seed is None else seed
    return Session.start(
        bank,
        history,
        questions=_choice(bank, history, topics, only, due, count, exam, chosen_seed),
        seed=chosen_seed,
        mode="exam" if exam else "review" if due else "practice",
        clock=now,
        tries=tries,
        minutes=minutes or (bank.rules.exam.minutes if exam else None),
    )


def _new_seed() -> int:
    return int.from_bytes(os.urandom(8), "big") % MAX_SEED


def _choice(
    bank: Bank,
    history: History,
    topics: tuple[str, ...],
    only: tuple[str, ...],
    due: bool,
    count: int | None,
    exam: bool,
    seed: int,
) -> tuple[str, ...]:
    """Return the questions to ask.

    Raises:
        ReaderkitError: a topic or an id that the bank does not have, or nothing left.
    """
    topics = choose_all("topic", topics, bank.topics())
    only = choose_all("question", only, bank.questions)
    if only:
        return only
    wanted = count or (bank.rules.exam.count if exam else bank.rules.count)
    if not due:
        among = without_self_marked(bank) if exam else None
        return choose_questions(
            bank, seed=seed, count=wanted, topics=topics, among=among
        )
    from readerkit.quiz.review import due_questions

    coming = [
        each
        for each in due_questions(history.told_answers(timestamp(now())))
        if each.question in bank.questions
        and (not topics or bank.questions[each.question].topic in topics)
    ]
    ready = [each.question for each in coming if each.moment <= now()]
    if not ready:
        after = (
            f"the next is due on {coming[0].moment:%Y-%m-%d %H:%M} UTC"
            if coming
            else (f"nothing was answered yet: {typed('quiz', str(bank.rules.phase))}")
        )
        raise ReaderkitError(f"nothing is due: {after}")
    return tuple(ready[:wanted])
