"""One quiz from its first question to its result.

The terminal, the JSON protocol and the served page all lead through this one class; it
knows nothing of how questions are shown. Every answer is committed to the history
before anything is said about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from types import MappingProxyType

from msgspec import UNSET
from msgspec.structs import asdict, replace

from readerkit.errors import ReaderkitError
from readerkit.model.expression import Number
from readerkit.model.language import Told
from readerkit.quiz.bank import Bank
from readerkit.quiz.hints import OfferedHint, hints
from readerkit.quiz.history import History
from readerkit.quiz.history_messages import Flagged
from readerkit.quiz.history_rows import (
    AnswerRow,
    Flag,
    HintTaken,
    SessionRow,
    new_id,
    timestamp,
)
from readerkit.quiz.messages import (
    Begun,
    DoneResult,
    Hint,
    MarkedAnswer,
    Prompt,
    QuestionLeftOut,
    Recorded,
    Score,
    SketchPrompt,
    Standing,
    TextFinding,
    TryResult,
)
from readerkit.quiz.report import (
    FREE_TEXT,
    QuestionOutcome,
    outcomes,
    scored,
    unanswered,
)
from readerkit.quiz.scoring import retry_points
from readerkit.quiz.variant import (
    WHOLE,
    AnswerError,
    Grade,
    Variant,
    all_said,
    ended,
)

Clock = Callable[[], datetime]


class Session:
    """A quiz that is being taken."""

    def __init__(
        self, bank: Bank, history: History, row: SessionRow, *, clock: Clock
    ) -> None:
        self.bank = bank
        self.row = row
        self.left_out: tuple[QuestionLeftOut, ...] = ()
        """What was asked for and cannot be asked of this reader, and why."""
        self._history = history
        self._clock = clock
        self._credits: dict[int, list[float]] = {}
        self._costs: dict[int, list[float]] = {}
        self._hints: dict[int, list[HintTaken]] = {}
        self._given: dict[int, str] = {}
        for answer in history.answers(row.id):
            self._credits.setdefault(answer.position, []).append(answer.credit)
            self._given[answer.position] = answer.answer
            self._costs.setdefault(answer.position, []).append(answer.hinted)
            if not answer.answer:
                self._give_up(answer.position)
        for hint in history.hints(row.id):
            self._hints.setdefault(hint.position, []).append(hint)
        for damaged in history.damaged():
            # It was acknowledged: the try is taken, whatever it said.
            if damaged.table == "answer" and damaged.values["session"] == row.id:
                self._credits.setdefault(damaged.values["position"], []).append(0.0)
        self._shown = clock()
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
    ) -> Session:
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
    ) -> Session:
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
        session._shown = shown or session._shown
        return session

    # --- where it stands ---

    @property
    def position(self) -> int:
        """The place of the current question, from 0; the number of them at the end."""
        return next(
            (i for i in range(len(self.row.questions)) if not self._is_done(i)),
            len(self.row.questions),
        )

    @property
    def attempt(self) -> int:
        """Which try at the current question is the next one, from 1."""
        return len(self._credits.get(self.position, [])) + 1

    @property
    def answered(self) -> int:
        """How many questions have an answer; one that was skipped has none."""
        rows = self._history.answers(self.row.id)
        return len({row.position for row in rows if row.answer})

    @property
    def is_begun(self) -> bool:
        """Whether a question was answered or skipped, or a hint was taken."""
        return bool(self._credits or self._hints)

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
        return self._history.is_official(self.row)

    @property
    def told_seed(self) -> int | None:
        """Its seed; not of an exam that goes on, as it names what will be asked."""
        return None if self.is_exam and not self.is_over else self.row.seed

    def time_left(self) -> float | None:
        """Return the seconds until the deadline; None where there is none."""
        if self.row.deadline is None:
            return None
        deadline = datetime.fromisoformat(self.row.deadline)
        return max(0.0, (deadline - self._clock()).total_seconds())

    def _is_done(self, position: int) -> bool:
        credits = self._credits.get(position, [])
        return bool(credits) and (
            credits[-1] >= 1 or len(credits) >= self._tries(position)
        )

    def _tries(self, position: int) -> int:
        question = self.bank.questions[self.row.questions[position]]
        return 1 if question.type in FREE_TEXT else self.row.tries

    def variant(self, position: int | None = None) -> Variant:
        """Return a question of the session, the current one by default."""
        where = self.position if position is None else position
        row = self.row
        return self.bank.variant(row.questions[where], row.seed, row.figures)

    # --- asking and answering ---

    def begun(self) -> Begun:
        """Return what the quiz is, and what is answered of it."""
        row = self.row
        return Begun(
            row.id,
            row.phase,
            self.told_seed,
            row.mode,
            self.is_official,
            len(row.questions),
            self.answered,
            row.tries,
            self.bank.rules.pass_mark,
            self.time_left(),
            due=UNSET if self.due is None else self.due,
        )

    def question(self) -> Prompt | None:
        """Return the current question; None where the quiz is over."""
        if self.is_over:
            return None
        self._shown = self._clock()
        variant, given = self.variant(), self._given.get(self.position, "")
        asked = variant.prompt
        taken = len(self._hints.get(self.position, []))
        offered = [] if self.is_exam else [*islice(hints(variant), taken + 1)]
        if isinstance(asked, SketchPrompt) and given:
            asked = replace(asked, given=tuple(re.split(r"\s*[\n;]\s*", given)))
        return replace(
            asked,
            position=self.position + 1,
            of=len(self.row.questions),
            attempt=self.attempt,
            seconds_left=self.time_left(),
            hints=tuple(hint.text for hint in offered[:taken]),
            hint_costs=_next_cost(offered, taken),
        )

    def hint(self) -> Hint:
        """Give the next hint to the current question; it costs, and is kept.

        Raises:
            AnswerError: an exam, or no hint that does not show the key.
        """
        variant, position = self._open_variant(), self.position
        if self.is_exam:
            raise AnswerError(Told("An exam gives no hints."))
        taken, offered = self._hints.setdefault(position, []), [*hints(variant)]
        if len(taken) >= len(offered):
            raise AnswerError(
                Told("There is no other hint that would not be the answer.")
                if taken
                else Told("There is no hint that would not be the answer.")
            )
        hint = offered[len(taken)]
        number, moment = len(taken) + 1, timestamp(self._clock())
        row = HintTaken(self.row.id, position, number, hint.cost, moment)
        self._history.hint(row)
        taken.append(row)
        following = _next_cost(offered, number)
        shown = (variant.prompt.id, hint.text, hint.cost, following)
        return Hint(position + 1, *shown)

    def answer(self, text: str) -> Recorded | TryResult | DoneResult:
        """Mark an answer to the current question, keep it, and say what it earned.

        Raises:
            AnswerError: an answer that cannot be read; nothing is kept.
            ReaderkitError: the quiz is over.
        """
        variant = self._open_variant()
        before = self._given.get(self.position, "")
        whole = variant.completed(text, before, is_exam=self.is_exam)
        return self._take(variant, whole, variant.grade(whole))

    def look(self, text: str) -> TextFinding:
        """Say what the machine finds in a text, before it is kept as an answer.

        Raises:
            AnswerError: no text to write was asked for, or it is an exam.
        """
        if self.is_exam:
            raise AnswerError(Told("nothing is said of a text before the exam is over"))
        return self._open_variant().finding(text)

    def skip(self) -> Recorded | TryResult | DoneResult:
        """Leave the current question without an answer; it earns nothing more."""
        return self._take(self._open_variant(), "", Grade(0.0), gives_up=True)

    def flag(self, words: str, question: str = "") -> Flagged:
        """Keep what the reader says of a question, the current one by default.

        Raises:
            AnswerError: nothing is said, or of a question that is not of this quiz.
        """
        name = question or self.row.questions[self.position]
        if not words.strip() or name not in self.row.questions:
            raise AnswerError(
                f"got '{words.strip()}' of {name}, expected words on a question of "
                "this quiz"
            )
        flag = Flag(name, words.strip(), self.row.seed, timestamp(self._clock()))
        self._history.flag(flag)
        return Flagged(name, (flag.words,))

    def leave_out(self, why: str) -> QuestionLeftOut:
        """Go on without the current question: its lines are not at hand.

        An exam that asks less than the bank chose does not count.
        """
        position, row = self.position, self.row
        name = row.questions[position]
        if self._credits.get(position):  # it was tried, when they were
            self._give_up(position)
        else:
            rest = (*row.questions[:position], *row.questions[position + 1 :])
            self.row = replace(row, questions=rest, official=False)
            self._history.ask_less(self.row)
        return QuestionLeftOut(name, why)

    def _open_variant(self) -> Variant:
        if self.position == len(self.row.questions):
            raise ReaderkitError("the quiz is over: every question has its answer")
        if self.time_left() == 0:
            raise ReaderkitError("the time is over: the quiz takes no more answers")
        return self.variant()

    def _take(
        self, variant: Variant, text: str, grade: Grade, *, gives_up: bool = False
    ) -> Recorded | TryResult | DoneResult:
        position = self.position
        credits = self._credits.setdefault(position, [])
        self._commit(variant, position, text, grade)
        credits.append(grade.credit)
        costs = self._costs.setdefault(position, [])
        costs.append(self._hinted(position))
        self._given[position] = text
        if gives_up:
            self._give_up(position)
        done = self._is_done(position)
        if self.is_exam:
            return Recorded(position=position + 1, done=done)
        result = TryResult(
            position=position + 1,
            done=done,
            id=variant.prompt.id,
            right=grade.is_right,
            credit=round(grade.credit, 4),
            points=round(retry_points(credits, costs), 4),
            remarks=grade.remarks + (ended(variant, text, grade) if done else ()),
            tries_left=0 if done else self._tries(position) - len(credits),
        )
        return DoneResult(**asdict(result), **asdict(variant.told)) if done else result

    def _hinted(self, position: int) -> float:
        """Return the part of a question's points that its hints cost so far."""
        return round(sum(hint.cost for hint in self._hints.get(position, [])), 4)

    def _give_up(self, position: int) -> None:
        """Count every try that is left as taken."""
        credits = self._credits[position]
        credits += [0.0] * (self._tries(position) - len(credits))

    def _commit(self, variant: Variant, position: int, text: str, grade: Grade) -> None:
        now = self._clock()
        written = self.bank.questions[variant.prompt.id]
        kept = self._history.record(
            AnswerRow(
                session=self.row.id,
                position=position,
                attempt=len(self._credits[position]) + 1,
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
                seconds=max(0.0, round((now - self._shown).total_seconds(), 3)),
                answered=timestamp(now),
                hinted=self._hinted(position),
            )
        )
        if not kept:
            raise ReaderkitError(
                f"session {self.row.id}: question {position + 1} was answered from "
                "somewhere else: start again to go on from there"
            )

    # --- the result ---

    def result(self) -> Score:
        """Return the score so far; an exam counts what nobody answered as lost.

        What was skipped is lost at the end; before that it says nothing. A verdict
        stands there after all of an exam, or of the questions; with an exam's verdict,
        once its time or its questions are over, every answer and its key.
        """
        found = self.outcomes()
        is_part = not self.is_exam and self.position < len(self.row.questions)
        score = scored(self.bank, found, is_part=is_part, standing=self._standing())
        if self.is_exam and self.is_over:
            return replace(score, marked=tuple(self._marked()))
        return score

    def standing(self) -> Standing:
        """Return an unfinished quiz's standing: no verdict, no points of an exam."""
        is_told = self.answered and not self.is_exam
        return self.result() if is_told else self._standing()

    def _standing(self) -> Standing:
        return Standing(
            complete=self.is_over,
            session=self.row.id,
            seed=self.told_seed,
            mode=self.row.mode,
            official=self.is_official,
            answered=self.answered,
            of=len(self.row.questions),
        )

    def outcomes(self) -> list[QuestionOutcome]:
        """Return the outcome of each question that counts."""
        found = outcomes(self._history.answers(self.row.id))
        if self.is_exam:
            names = enumerate(self.row.questions)
            missing = [name for at, name in names if at not in self._credits]
            found += unanswered(self.bank, missing)
        return found

    def finish(self) -> Score:
        """End the session and return its result."""
        self._history.end(self.row.id, timestamp(self._clock()))
        return self.result()

    def _marked(self) -> Iterator[MarkedAnswer]:
        """Yield every answer with its mark and explanation: the end of an exam."""
        for answer in self._history.answers(self.row.id):
            variant = self.variant(answer.position)
            yield MarkedAnswer(
                **asdict(answer),
                prompt=variant.prompt.prompt,
                right=answer.credit >= WHOLE,
                remarks=all_said(variant, answer.answer),
                **asdict(variant.told),
            )


def _next_cost(offered: list[OfferedHint], taken: int) -> float | None:
    return offered[taken].cost if taken < len(offered) else None
