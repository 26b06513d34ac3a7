"""Begins a quiz, however it is shown: which questions, under which rules."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct

from readerkit.errors import ReaderkitError
from readerkit.quiz.bank import Bank
from readerkit.quiz.history import History, timestamp
from readerkit.quiz.session import SELF_MARKED, Session
from readerkit.quiz.variant import Draw
from readerkit.wording.meant_name import choose_all
from readerkit.wording.next_command import typed

MAX_SEED = 1_000_000


def now() -> datetime:
    """Return this moment."""
    return datetime.now(UTC)


class WantedQuiz(Struct, frozen=True, kw_only=True):
    """What a reader asks for; the bank's own rules where nothing is said."""

    topics: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    """These questions, in their order."""
    due: bool = False
    count: int | None = None
    exam: bool = False
    seed: int | None = None
    tries: int = 2
    minutes: float | None = None

    @property
    def is_another(self) -> bool:
        """Whether it says what to ask: no quiz that was left is meant."""
        named = self.topics or self.only or self.due or self.count or self.exam
        return bool(named) or self.seed is not None


def begin(bank: Bank, history: History, wanted: WantedQuiz) -> Session:
    """Return a new session, kept in the history.

    Raises:
        ReaderkitError: a topic or an id that the bank does not have, or nothing left.
    """
    seed = wanted.seed
    if seed is None:
        seed = int.from_bytes(os.urandom(8), "big") % MAX_SEED
    rules = bank.rules.exam if wanted.exam else bank.rules
    topics = choose_all("topic", wanted.topics, bank.topics())
    questions = choose_all("question", wanted.only, bank.questions)
    count = wanted.count or rules.count
    if not questions and wanted.due:
        questions = _due(bank, history, topics)[:count]
    elif not questions:
        among = without_self_marked(bank) if wanted.exam else None
        questions = choose_questions(
            bank, seed=seed, count=count, topics=topics, among=among
        )
    return Session.start(
        bank,
        history,
        questions=questions,
        seed=seed,
        mode="exam" if wanted.exam else "review" if wanted.due else "practice",
        clock=now,
        tries=wanted.tries,
        minutes=wanted.minutes or (bank.rules.exam.minutes if wanted.exam else None),
    )


def choose_questions(
    bank: Bank,
    *,
    seed: int,
    count: int,
    topics: Iterable[str] = (),
    among: Iterable[str] | None = None,
) -> tuple[str, ...]:
    """Return questions spread over the objectives, in an order that the seed names.

    Each round takes one question of every objective, so that a short quiz still asks
    about as many of them as it can.
    """
    wanted = set(topics)
    allowed = set(bank.questions if among is None else among)
    draw = Draw(bank.rules.version, "the choice of questions", seed)
    piles: dict[str, list[str]] = {}
    for name in draw.shuffled(sorted(allowed & set(bank.questions))):
        question = bank.questions[name]
        if not wanted or question.topic in wanted:
            piles.setdefault(question.objective, []).append(name)
    chosen: list[str] = []
    while len(chosen) < count and any(piles.values()):
        for objective in draw.shuffled(sorted(piles)):
            if piles[objective] and len(chosen) < count:
                chosen.append(piles[objective].pop())
    return tuple(chosen)


def without_self_marked(bank: Bank) -> list[str]:
    """Return the questions that an exam may ask: nobody marks their own."""
    return [q.id for q in bank.questions.values() if q.type not in SELF_MARKED]


def _due(bank: Bank, history: History, topics: tuple[str, ...]) -> tuple[str, ...]:
    """Return the questions that are due, the longest first.

    Raises:
        ReaderkitError: none is.
    """
    from readerkit.quiz.review import due_questions  # fsrs takes a while to import

    coming = [
        each
        for each in due_questions(history.told_answers(timestamp(now())))
        if each.question in bank.questions
        and (not topics or bank.questions[each.question].topic in topics)
    ]
    ready = tuple(each.question for each in coming if each.moment <= now())
    if not ready:
        after = f"nothing was answered yet: {typed('quiz', str(bank.rules.phase))}"
        if coming:
            after = f"the next is due on {coming[0].moment:%Y-%m-%d %H:%M} UTC"
        raise ReaderkitError(f"nothing is due: {after}")
    return ready
