"""One quiz from its first question to its result, as JSON values.

The terminal, the JSON protocol and the served page all lead through this one class; it
knows nothing of how questions are shown. Every answer is committed to the history
before anything is said about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from msgspec import structs

from readerkit.errors import ReaderkitError
from readerkit.quiz.bank import Bank
from readerkit.quiz.history import AnswerRow, History, SessionRow, new_id, timestamp
from readerkit.quiz.kinds import Grade
from readerkit.quiz.question import Variant
from readerkit.quiz.report import (
    QuestionOutcome,
    outcomes,
    read_next,
    score,
    unanswered,
)
from readerkit.quiz.scoring import retry_points
from readerkit.quiz.seeded_random import Draw
from readerkit.quiz.variant_context import ResolvedPlace

Clock = Callable[[], datetime]

SELF_MARKED = {"short"}
"""Types of which a second try would be worth nothing: the model answer is out."""


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


class Session:
    """A quiz that is being taken."""

    def __init__(
        self, bank: Bank, history: History, row: SessionRow, *, clock: Clock
    ) -> None:
        self.bank = bank
        self.row = row
        self._history = history
        self._clock = clock
        self._credits: dict[int, list[float]] = {}
        for answer in history.answers(row.id):
            self._credits.setdefault(answer.position, []).append(answer.credit)
            if not answer.answer:
                self._give_up(answer.position)
        self._shown = clock()

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
        """Whether a question was answered or skipped."""
        return bool(self._credits)

    @property
    def is_over(self) -> bool:
        """Whether every question is done, or the time is over."""
        return self.position == len(self.row.questions) or self.time_left() == 0

    @property
    def is_exam(self) -> bool:
        """Whether nothing is said until the end."""
        return self.row.mode == "exam"

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
        return 1 if question.type in SELF_MARKED else self.row.tries

    def variant(self, position: int | None = None) -> Variant:
        """Return a question of the session, the current one by default."""
        where = self.position if position is None else position
        return self.bank.variant(self.row.questions[where], self.row.seed)

    # --- asking and answering ---

    def question(self) -> dict[str, Any] | None:
        """Return the current question; None where the quiz is over."""
        if self.is_over:
            return None
        position = self.position
        self._shown = self._clock()
        return {
            "position": position + 1,
            "of": len(self.row.questions),
            "attempt": self.attempt,
            **asked(self.bank, self.variant(position)),
        }

    def answer(self, text: str) -> dict[str, Any]:
        """Mark an answer to the current question, keep it, and say what it earned.

        Raises:
            AnswerError: an answer that cannot be read; nothing is kept.
            ReaderkitError: the quiz is over.
        """
        return self._take(text, self.variant().grade(text) if self._is_open() else None)

    def skip(self) -> dict[str, Any]:
        """Leave the current question without an answer; it earns nothing more."""
        self._is_open()
        return self._take("", Grade(0.0), gives_up=True)

    def _is_open(self) -> bool:
        if self.position == len(self.row.questions):
            raise ReaderkitError("the quiz is over: every question has its answer")
        if self.time_left() == 0:
            raise ReaderkitError("the time is over: the quiz takes no more answers")
        return True

    def _take(
        self, text: str, grade: Grade | None, *, gives_up: bool = False
    ) -> dict[str, Any]:
        assert grade is not None
        position = self.position
        variant = self.variant(position)
        credits = self._credits.setdefault(position, [])
        self._commit(variant, position, text, grade)
        credits.append(grade.credit)
        if gives_up:
            self._give_up(position)
        done = self._is_done(position)
        if self.is_exam:
            return {"position": position + 1, "recorded": True, "done": done}
        result: dict[str, Any] = {
            "position": position + 1,
            "id": variant.question.id,
            "recorded": True,
            "right": grade.is_right,
            "credit": round(grade.credit, 4),
            "points": round(retry_points(credits), 4),
            "remarks": [
                {"text": r.text, "place": r.place and place_values(r.place)}
                for r in grade.remarks
            ],
            "done": done,
            "tries_left": 0 if done else self._tries(position) - len(credits),
        }
        if done:
            result.update(explained(variant))
        return result

    def _give_up(self, position: int) -> None:
        """Count every try that is left as taken."""
        credits = self._credits[position]
        credits += [0.0] * (self._tries(position) - len(credits))

    def _commit(self, variant: Variant, position: int, text: str, grade: Grade) -> None:
        now = self._clock()
        written = variant.question
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
                choices=variant.asked.choices,
                seconds=round((now - self._shown).total_seconds(), 3),
                answered=timestamp(now),
            )
        )
        if not kept:
            raise ReaderkitError(
                f"session {self.row.id}: question {position + 1} was answered from "
                "somewhere else: start again to go on from there"
            )

    # --- the result ---

    def result(self) -> dict[str, Any]:
        """Return the score so far; an exam counts what nobody answered as lost.

        What was skipped is lost at the end; before that it says nothing.

        ``passed`` stands there once there is a verdict: after all of an exam, or of the
        questions.
        """
        found = self.outcomes()
        is_part = not self.is_exam and self.position < len(self.row.questions)
        counted = [each for each in found if not (is_part and each.is_left_out)]
        points = score(counted, self.bank.rules.pass_mark)
        if is_part:
            del points["passed"]
        return {
            **points,
            "answered": self.answered,
            "of": len(self.row.questions),
            "session": self.row.id,
            "seed": self.row.seed,
            "mode": self.row.mode,
            "read_next": read_next(self.bank, found),
        }

    def standing(self) -> dict[str, Any]:
        """Return an unfinished quiz's standing: no verdict, no points of an exam."""
        told = {
            "session": self.row.id,
            "seed": self.row.seed,
            "mode": self.row.mode,
            "answered": self.answered,
            "of": len(self.row.questions),
        }
        return told if self.is_exam or not self.answered else {**told, **self.result()}

    def outcomes(self) -> list[QuestionOutcome]:
        """Return the outcome of each question that counts."""
        found = outcomes(self._history.answers(self.row.id))
        if self.is_exam:
            missing = [
                name
                for position, name in enumerate(self.row.questions)
                if position not in self._credits
            ]
            found += unanswered(self.bank, missing)
        return found

    def finish(self) -> dict[str, Any]:
        """End the session and return its result."""
        self._history.end(self.row.id, timestamp(self._clock()))
        return self.result()

    def marked(self) -> list[dict[str, Any]]:
        """Return every answer with its mark and explanation: the end of an exam."""
        rows = []
        for answer in self._history.answers(self.row.id):
            variant = self.variant(answer.position)
            rows.append(
                {
                    **asdict(answer),
                    "prompt": variant.prompt,
                    "right": answer.credit >= 1,
                    **explained(variant),
                }
            )
        return rows


def asked(bank: Bank, variant: Variant) -> dict[str, Any]:
    """Return the reader's view of a question, as JSON values; no key."""
    written = variant.question
    return {
        "id": written.id,
        "kind": written.type,
        "topic": written.topic,
        "objective": bank.objectives[written.objective].title,
        "difficulty": written.difficulty,
        "prompt": variant.prompt,
        "how": variant.asked.help,
        **variant.asked.shown(),
    }


def explained(variant: Variant) -> dict[str, Any]:
    """Return the solution of a question: key, reason, where to read."""
    return {
        "solution": variant.asked.solution(),
        "explanation": variant.explanation,
        "links": [place_values(place) for place in variant.links],
        "references": [
            {**structs.asdict(variant.works[key]), "key": key, "section": section}
            for key, section in variant.question.sections()
        ],
    }


def place_values(place: ResolvedPlace) -> dict[str, Any]:
    """Return a place as JSON values."""
    return {**structs.asdict(place), "text": str(place)}
