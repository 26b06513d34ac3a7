"""Begins a quiz, however it is shown: which questions, under which rules."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import starmap

from readerkit.app.due_questions import due_now, within_day
from readerkit.errors import ReaderkitError
from readerkit.model.expression import Number
from readerkit.model.language import Told
from readerkit.quiz.bank import Bank
from readerkit.quiz.history import History
from readerkit.quiz.messages import QuestionLeftOut
from readerkit.quiz.report import FREE_TEXT
from readerkit.quiz.selection import (
    WantedQuiz,
    choose_questions,
    matching,
    suspended,
)
from readerkit.quiz.session import Session
from readerkit.wording.meant_name import choose_all

MAX_SEED = 1_000_000
IN_SECONDS = 90
"""Up to so many a time is told in seconds, above in minutes, rounded up."""
PRACTICE_EXAM = Told(
    "For practice: it does not count in progress. An exam counts where the bank alone "
    "chose questions, seed and time, and nobody saw them before."
)


def now() -> datetime:
    """Return this moment."""
    return datetime.now(UTC)


def begin(bank: Bank, history: History, wanted: WantedQuiz) -> Session:
    """Return a new session, kept in the history.

    Raises:
        ReaderkitError: a topic or an id that the bank does not have, or nothing left.
    """
    seed = _new_seed(history) if wanted.seed is None else wanted.seed
    rules = bank.rules.exam if wanted.exam else bank.rules
    only = tuple(dict.fromkeys(choose_all("question", wanted.only, bank.questions)))
    count, due, begun = wanted.count or rules.count, None, now()
    among = set(only) or matching(bank, wanted)
    if wanted.exam and not only:
        among = {name for name in among if not bank.questions[name].own_figures}
    elif not only:
        among -= suspended(history)

    def choose(among: set[str]) -> tuple[str, ...]:
        nonlocal due
        if only:
            return tuple(name for name in only if name in among)
        if wanted.due:
            ready = due_now(bank, history, among, begun)
            due = len(ready)
            return within_day(ready, history, begun)[:count]
        return choose_questions(bank, seed=seed, count=count, among=among)

    questions, figures, lacking = _with_figures(bank, choose, among)
    if not questions:
        aside = 0 if wanted.exam else len(matching(bank, wanted) & suspended(history))
        raise _nothing_left(lacking, aside)
    limit = bank.rules.exam.minutes
    in_time = not limit or (wanted.minutes or limit) <= limit
    session = Session.start(
        bank,
        history,
        questions=questions,
        seed=seed,
        mode="exam" if wanted.exam else "review" if wanted.due else "practice",
        clock=now,
        tries=wanted.tries,
        minutes=wanted.minutes or (limit if wanted.exam else None),
        official=wanted.exam and not wanted.is_chosen and in_time,
        figures=figures,
    )
    session.due = due
    if wanted.only or wanted.topics or wanted.due:
        session.left_out = tuple(starmap(QuestionLeftOut, lacking.items()))
    return session


def _nothing_left(lacking: dict[str, str], suspended: int) -> ReaderkitError:
    """Return why there is no question to ask."""
    if lacking:
        first, *rest = dict.fromkeys(lacking.values())
        return ReaderkitError("\n".join((f"nothing to ask about yet: {first}", *rest)))
    aside = f" and not suspended ({suspended} are)" if suspended else ""
    what = "no question of the bank is all of this"
    return ReaderkitError(f"{what}{aside}: ask for less")


def _with_figures(
    bank: Bank, choose: Callable[[set[str]], tuple[str, ...]], among: set[str]
) -> tuple[tuple[str, ...], dict[str, Number], dict[str, str]]:
    """Return what is chosen, the reader's figures for it, and what lacks some, and why.

    Others are chosen in the place of questions about what this reader does not have.
    """
    figures: dict[str, Number] = {}
    lacking: dict[str, str] = {}
    chosen = choose(among)
    if not any(bank.questions[name].own_figures for name in chosen):
        return chosen, figures, lacking
    from readerkit.app.own_figures import OwnFigures, OwnLacking

    own = OwnFigures()
    while True:
        for name in chosen:
            try:
                figures |= own.of(bank.questions[name].own_figures)
            except OwnLacking as error:
                lacking[name] = str(error)
        if not lacking.keys() & set(chosen):
            return chosen, figures, lacking
        chosen = choose(among - lacking.keys())


def exam_rules(session: Session) -> tuple[Told, ...]:
    """Return how an exam goes, to be said before its first question.

    The time it says is the whole exam's; each question says what is left of it.
    """
    count, whole = len(session.row.questions), session.whole_time()
    one, many = Told("1 question"), Told("{count} questions", count=count)
    rules = Told(
        "Exam: {questions}, one try at each, no hints, no word until the end; {share} "
        "passes."
        if whole is None
        else "Exam: {questions} in {time}, one try at each, no hints, no "
        "word until the end; {share} passes.",
        questions=one if count == 1 else many,
        share=f"{session.bank.rules.pass_mark:.0%}",
        time=_time(whole or 0),
    )
    asked = session.bank.questions
    texts = sum(asked[name].type in FREE_TEXT for name in session.row.questions)
    free = Told(
        "{texts} of {count} ask for your own words: the machine looks for the points "
        "in them, and what it finds counts ({share} of the points).",
        texts=texts,
        count=count,
        share=f"{texts / count:.0%}",
    )
    said = (rules, free) if texts else (rules,)
    return said if session.is_official else (*said, PRACTICE_EXAM)


def _time(seconds: float) -> Told:
    """Return how long an exam lasts, in words."""
    if seconds <= IN_SECONDS:
        return Told("{seconds} seconds", seconds=math.ceil(seconds))
    return Told("{minutes} minutes", minutes=math.ceil(seconds / 60))


def _new_seed(history: History) -> int:
    """Return a seed of which nobody saw a variant: 0 is that of the site's pages."""
    seen = {0, *history.seeds()}
    while (seed := int.from_bytes(os.urandom(8), "big") % MAX_SEED) in seen:
        pass
    return seed
