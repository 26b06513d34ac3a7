"""What is kept of one quiz, and where it stands: its questions, tries, hints and time.

Every answer is committed to the history before anything is said about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Self

from msgspec.structs import replace

from readerkit.errors import ReaderkitError
from readerkit.model.expression import Number
from readerkit.quiz.bank import Bank
from readerkit.quiz.history import History
from readerkit.quiz.history_rows import (
    AnswerRow,
    HintTaken,
    SessionRow,
    new_id,
    timestamp,
)
from readerkit.quiz.messages import QuestionLeftOut
from readerkit.quiz.report import FREE_TEXT
from readerkit.quiz.variant import Grade, Variant

Clock = Callable[[], datetime]


class SessionState:
    """A quiz as the history has it, and what is next in it."""

    def __init__(
        self, bank: Bank, history: History, row: SessionRow, *, clock: Clock
    ) -> None:
        self.bank = bank
        self.row = row
        self.left_out: tuple[QuestionLeftOut, ...] = ()
        """What was asked for and cannot be asked of this reader, and why."""
        self.history = history
        self.clock = clock
        self.credits: dict[int, list[float]] = {}
        self.costs: dict[int, list[float]] = {}
        self.hints_taken: dict[int, list[HintTaken]] = {}
        self.given: dict[int, str] = {}
        for answer in history.answers(row.id):
            self.credits.setdefault(answer.position, []).append(answer.credit)
            self.given[answer.position] = answer.answer
            self.costs.setdefault(answer.position, []).append(answer.hinted)
            if not answer.answer:
                self.give_up(answer.position)
        for hint in history.hints(row.id):
            self.hints_taken.setdefault(hint.position, []).append(hint)
        for damaged in history.damaged():
            # It was acknowledged: the try is taken, whatever it said.
            if damaged.table == "answer" and damaged.values["session"] == row.id:
                self.credits.setdefault(damaged.values["position"], []).append(0.0)
        self.shown = clock()
        self.due: int | None = None
        """Of a review: how many are due, those among them that it does not ask."""

    @classmethod
    def start(
        cls,
        bank: Bank,
        history: History,
        *,
        questions: tuple[str, ...],
        seed: int,
        mode: str,
        clock: Clock,
        tries: int = 2,
        minutes: float | None = None,
        official: bool = False,
        figures: Mapping[str, Number] = MappingProxyType({}),
    ) -> Self:
        """Return a new session, kept in the history."""
        now = clock()
        row = SessionRow(
            id=new_id(),
            phase=bank.rules.phase,
            bank_version=bank.rules.version,
            seed=seed,
            mode=mode,
            tries=1 if mode == "exam" else tries,
            questions=questions,
            started=timestamp(now),
            deadline=timestamp(now + timedelta(minutes=minutes)) if minutes else None,
            official=official,
            figures={**figures},
        )
        history.start(row)
        return cls(bank, history, row, clock=clock)

    @classmethod
    def resume(
        cls,
        bank: Bank,
        history: History,
        row: SessionRow,
        *,
        clock: Clock,
        shown: datetime | None = None,
    ) -> Self:
        """Return a session that was left.

        ``shown`` is when its question was, where that is known from elsewhere.

        Raises:
            ReaderkitError: the bank has changed since, so its variants are others.
        """
        gone = [name for name in row.questions if name not in bank.questions]
        if row.bank_version != bank.rules.version or gone:
            raise ReaderkitError(
                f"session {row.id}: the bank has changed since it began: "
                "start a new quiz (what was answered is kept)"
            )
        session = cls(bank, history, row, clock=clock)
        session.shown = shown or session.shown
        return session

    # --- where it stands ---

    @property
    def position(self) -> int:
        """The place of the current question, from 0; the number of them at the end."""
        return next(
            (i for i in range(len(self.row.questions)) if not self.is_done(i)),
            len(self.row.questions),
        )

    @property
    def attempt(self) -> int:
        """Which try at the current question is the next one, from 1."""
        return len(self.credits.get(self.position, [])) + 1

    @property
    def answered(self) -> int:
        """How many questions were answered: not skipped, and with no try left."""
        rows = self.history.answers(self.row.id)
        return len({r.position for r in rows if r.answer and self.is_done(r.position)})

    @property
    def can_go_on(self) -> bool:
        """Whether what was left can be resumed: as ``History.unfinished`` finds it."""
        is_open = self.is_exam and self.time_left() != 0
        return is_open or bool(self.credits or self.hints_taken)

    @property
    def is_over(self) -> bool:
        """Whether every question is done, or the time is over."""
        return self.position == len(self.row.questions) or self.time_left() == 0

    @property
    def is_exam(self) -> bool:
        """Whether nothing is said until the end."""
        return self.row.mode == "exam"

    @property
    def is_official(self) -> bool:
        """Whether it is an exam that counts: the bank chose, and nobody looked."""
        return self.history.is_official(self.row)

    @property
    def told_seed(self) -> int | None:
        """Its seed; not of an exam that goes on, as it names what will be asked."""
        return None if self.is_exam and not self.is_over else self.row.seed

    def whole_time(self) -> float | None:
        """Return the seconds from its beginning to the deadline; None without one."""
        if self.row.deadline is None:
            return None
        began, end = map(datetime.fromisoformat, (self.row.started, self.row.deadline))
        return (end - began).total_seconds()

    def time_left(self) -> float | None:
        """Return the seconds until the deadline; None where there is none."""
        if self.row.deadline is None:
            return None
        left = datetime.fromisoformat(self.row.deadline) - self.clock()
        # A clock that is set back gives no time.
        return max(0.0, min(left.total_seconds(), self.whole_time() or 0.0))

    def is_done(self, position: int) -> bool:
        """Tell whether a question has no try left, or needs none."""
        credits = self.credits.get(position, [])
        return bool(credits) and (
            credits[-1] >= 1 or len(credits) >= self.tries(position)
        )

    def tries(self, position: int) -> int:
        """Return how many tries a question has."""
        question = self.bank.questions[self.row.questions[position]]
        return 1 if question.type in FREE_TEXT else self.row.tries

    def variant(self, position: int | None = None) -> Variant:
        """Return a question of the session, the current one by default."""
        where = self.position if position is None else position
        row = self.row
        return self.bank.variant(row.questions[where], row.seed, row.figures)

    # --- what is kept of an answer ---

    def leave_out(self, why: str) -> QuestionLeftOut:
        """Go on without the current question: its lines are not at hand.

        An exam that asks less than the bank chose does not count.
        """
        position, row = self.position, self.row
        name = row.questions[position]
        if self.credits.get(position):  # it was tried, when they were
            self.give_up(position)
        else:
            rest = (*row.questions[:position], *row.questions[position + 1 :])
            self.row = replace(row, questions=rest, official=False)
            self.history.ask_less(self.row)
        return QuestionLeftOut(name, why)

    def hinted(self, position: int) -> float:
        """Return the part of a question's points that its hints cost so far."""
        return round(sum(hint.cost for hint in self.hints_taken.get(position, [])), 4)

    def give_up(self, position: int) -> None:
        """Count every try that is left as taken."""
        credits = self.credits[position]
        credits += [0.0] * (self.tries(position) - len(credits))

    def keep(self, variant: Variant, position: int, text: str, grade: Grade) -> None:
        """Commit an answer to the history.

        Raises:
            ReaderkitError: it was answered from somewhere else meanwhile.
        """
        now = self.clock()
        written = self.bank.questions[variant.prompt.id]
        kept = self.history.record(
            AnswerRow(
                session=self.row.id,
                position=position,
                attempt=len(self.credits[position]) + 1,
                question=written.id,
                topic=written.topic,
                objective=written.objective,
                difficulty=written.difficulty,
                seed=self.row.seed,
                bank_version=self.bank.rules.version,
                answer=text,
                credit=grade.credit,
                choices=variant.choices,
                # A clock may be set back meanwhile.
                seconds=max(0.0, round((now - self.shown).total_seconds(), 3)),
                answered=timestamp(now),
                hinted=self.hinted(position),
            )
        )
        if not kept:
            raise ReaderkitError(
                f"session {self.row.id}: question {position + 1} was answered from "
                "somewhere else: start again to go on from there"
            )
