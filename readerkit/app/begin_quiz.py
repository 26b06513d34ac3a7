"""Begins a quiz, however it is shown: which questions, under which rules."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import starmap
from typing import TYPE_CHECKING

from msgspec import Struct

from readerkit.errors import ReaderkitError, WrongUseError
from readerkit.model.expression import Number
from readerkit.model.language import Told
from readerkit.quiz.bank import Bank
from readerkit.quiz.history import History
from readerkit.quiz.history_messages import ListedQuestion
from readerkit.quiz.history_rows import timestamp
from readerkit.quiz.messages import QuestionLeftOut
from readerkit.quiz.report import FREE_TEXT
from readerkit.quiz.seeded_draw import SeededDraw
from readerkit.quiz.session import Session
from readerkit.wording.meant_name import choose_all
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.quiz.spaced_repetition import Due

MAX_SEED = 1_000_000
IN_SECONDS = 90
"""Up to so many a time is told in seconds, above in minutes, rounded up."""
RETENTION, DAILY = "READERKIT_RETENTION", "READERKIT_DAILY"
PRACTICE_EXAM = Told(
    "For practice: it does not count in progress. An exam counts where the bank alone "
    "chose questions, seed and time, and nobody saw them before."
)


def now() -> datetime:
    """Return this moment."""
    return datetime.now(UTC)


class WantedQuiz(Struct, frozen=True, kw_only=True):
    """What a reader asks for; the bank's own rules where nothing is said."""

    topics: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    difficulties: tuple[int, ...] = ()
    only: tuple[str, ...] = ()
    """These questions, in their order."""
    due: bool = False
    count: int | None = None
    exam: bool = False
    seed: int | None = None
    tries: int = 2
    minutes: float | None = None

    @property
    def is_chosen(self) -> bool:
        """Whether the reader chooses what is asked: no exam that counts."""
        named = (self.topics, self.objectives, self.kinds, self.difficulties)
        other = self.only or self.due or self.count or self.seed is not None
        return any(named) or bool(other)


def begin(bank: Bank, history: History, wanted: WantedQuiz) -> Session:
    """Return a new session, kept in the history.

    Raises:
        ReaderkitError: a topic or an id that the bank does not have, or nothing left.
    """
    seed = _new_seed(history) if wanted.seed is None else wanted.seed
    rules = bank.rules.exam if wanted.exam else bank.rules
    only = tuple(dict.fromkeys(choose_all("question", wanted.only, bank.questions)))
    count, due = wanted.count or rules.count, None
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
            ready = _due(bank, history, among)
            due = len(ready)
            return _within_day(ready, history)[:count]
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


def matching(bank: Bank, wanted: WantedQuiz) -> set[str]:
    """Return the questions that are of what a reader wants.

    Raises:
        ReaderkitError: a name that the bank does not have.
    """
    asked = bank.questions.values()
    topics = choose_all("topic", wanted.topics, bank.topics())
    objectives = choose_all("objective", wanted.objectives, bank.objectives)
    kinds = choose_all("kind", wanted.kinds, dict.fromkeys(q.type for q in asked))
    return {
        each.id
        for each in asked
        if (not topics or each.topic in topics)
        and (not objectives or each.objective in objectives)
        and (not kinds or each.type in kinds)
        and (not wanted.difficulties or each.difficulty in wanted.difficulties)
    }


def choose_questions(
    bank: Bank,
    *,
    seed: int,
    count: int,
    among: Iterable[str] | None = None,
) -> tuple[str, ...]:
    """Return questions spread over the objectives, in an order that the seed names.

    Each round takes one question of every objective, so that a short quiz still asks
    about as many of them as it can.
    """
    allowed = set(bank.questions if among is None else among)
    draw = SeededDraw(bank.rules.version, "the choice of questions", seed)
    piles: dict[str, list[str]] = {}
    for name in draw.shuffled(sorted(allowed & set(bank.questions))):
        piles.setdefault(bank.questions[name].objective, []).append(name)
    chosen: list[str] = []
    while len(chosen) < count and any(piles.values()):
        for objective in draw.shuffled(sorted(piles)):
            if piles[objective] and len(chosen) < count:
                chosen.append(piles[objective].pop())
    return tuple(chosen)


def suspended(history: History) -> set[str]:
    """Return the questions that only exams ask."""
    return {each.question for each in history.suspensions()}


def list_bank(
    bank: Bank, history: History, wanted: WantedQuiz, *, flagged: bool = False
) -> list[ListedQuestion]:
    """Return the questions that are of what a reader wants, in the bank's order."""
    moment = now()
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
    return due_questions(answers, retention=_setting(RETENTION, 0.9, 0.7, 0.97))


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


def _within_day(ready: tuple[str, ...], history: History) -> tuple[str, ...]:
    """Return those of the questions that are due which the day still has room for.

    Raises:
        ReaderkitError: the day had as many as the reader wants.
    """
    limit = int(_setting(DAILY, 0, 0, 9999))
    if not limit:
        return ready
    today = now().astimezone().date()
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


def _due(bank: Bank, history: History, among: set[str]) -> tuple[str, ...]:
    """Return the questions that are due, the longest first.

    Raises:
        ReaderkitError: none is.
    """
    coming = [each for each in coming_back(history, now()) if each.question in among]
    ready = tuple(each.question for each in coming if each.moment <= now())
    if not ready:
        after = f"nothing was answered yet: {typed('quiz', str(bank.rules.phase))}"
        if coming:
            after = f"the next is due on {coming[0].moment:%Y-%m-%d %H:%M} UTC"
        raise ReaderkitError(f"nothing is due: {after}")
    return ready
