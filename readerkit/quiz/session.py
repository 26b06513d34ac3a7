"""One quiz from its first question to its result.

The terminal, the JSON protocol and the served page all lead through this one class; it
knows nothing of how questions are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import UNSET
from msgspec.structs import asdict, replace

from readerkit.errors import ReaderkitError
from readerkit.model.language import Told
from readerkit.quiz.hints import OfferedHint, hints
from readerkit.quiz.history_messages import Flagged
from readerkit.quiz.history_rows import Flag, HintTaken, timestamp
from readerkit.quiz.messages import (
    Begun,
    DoneResult,
    Hint,
    MarkedAnswer,
    Recorded,
    Score,
    Standing,
    TextFinding,
    TryResult,
)
from readerkit.quiz.prompts import Prompt, SketchPrompt
from readerkit.quiz.report import QuestionOutcome, outcomes, scored, unanswered
from readerkit.quiz.scoring import retry_points
from readerkit.quiz.session_state import SessionState
from readerkit.quiz.variant import WHOLE, AnswerError, Grade, Variant, all_said, ended


class Session(SessionState):
    """A quiz that is being taken: it asks, marks and tells the result."""

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
        self.shown = self.clock()
        variant, given = self.variant(), self.given.get(self.position, "")
        asked = variant.prompt
        taken = len(self.hints_taken.get(self.position, []))
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
        taken, offered = self.hints_taken.setdefault(position, []), [*hints(variant)]
        if len(taken) >= len(offered):
            raise AnswerError(
                Told("There is no other hint that would not be the answer.")
                if taken
                else Told("There is no hint that would not be the answer.")
            )
        hint = offered[len(taken)]
        number, moment = len(taken) + 1, timestamp(self.clock())
        row = HintTaken(self.row.id, position, number, hint.cost, moment)
        self.history.hint(row)
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
        before = self.given.get(self.position, "")
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
        flag = Flag(name, words.strip(), self.row.seed, timestamp(self.clock()))
        self.history.flag(flag)
        return Flagged(name, (flag.words,))

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
        credits = self.credits.setdefault(position, [])
        self.keep(variant, position, text, grade)
        credits.append(grade.credit)
        costs = self.costs.setdefault(position, [])
        costs.append(self.hinted(position))
        self.given[position] = text
        if gives_up:
            self.give_up(position)
        done = self.is_done(position)
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
            tries_left=0 if done else self.tries(position) - len(credits),
        )
        return DoneResult(**asdict(result), **asdict(variant.told)) if done else result

    # --- the result ---

    def result(self) -> Score:
        """Return the score so far; an exam counts what nobody answered as lost.

        What was skipped is lost at the end; before that it says nothing. A verdict
        stands there after all of an exam, or of the questions; with an exam's verdict,
        once its time or its questions are over, every answer and its key.
        """
        is_part = not self.is_exam and self.position < len(self.row.questions)
        found = self._outcomes(is_part=is_part)
        score = scored(self.bank, found, is_part=is_part, standing=self._standing())
        if self.is_exam and self.is_over:
            return replace(score, marked=tuple(self._marked()))
        return score

    def standing(self) -> Standing:
        """Return an unfinished quiz's standing: no verdict, no points of an exam."""
        is_told = self.answered and not self.is_exam
        return self.result() if is_told else self._standing()

    def finish(self) -> Score:
        """End the session and return its result."""
        self.history.end(self.row.id, timestamp(self.clock()))
        return self.result()

    def _standing(self) -> Standing:
        """Return where a quiz stands, without a word on points."""
        return Standing(
            complete=self.is_over,
            session=self.row.id,
            seed=self.told_seed,
            mode=self.row.mode,
            official=self.is_official,
            answered=self.answered,
            of=len(self.row.questions),
        )

    def _outcomes(self, *, is_part: bool) -> list[QuestionOutcome]:
        """Return the outcome of each question that counts: of a part, of those done."""
        rows = self.history.answers(self.row.id)
        found = outcomes(r for r in rows if not is_part or self.is_done(r.position))
        if self.is_exam:
            names = enumerate(self.row.questions)
            missing = [name for at, name in names if at not in self.credits]
            found += unanswered(self.bank, missing)
        return found

    def _marked(self) -> Iterator[MarkedAnswer]:
        """Yield every answer with its mark and explanation: the end of an exam."""
        for answer in self.history.answers(self.row.id):
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
