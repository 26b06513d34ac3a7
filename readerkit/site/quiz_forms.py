"""The quiz on the served page: a form comes in, the next turn goes out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from readerkit.app.begin_quiz import PRACTICE_EXAM, begin, exam_rules, now
from readerkit.app.quiz_banks import QuizBanks as Banks
from readerkit.app.quiz_banks import open_history
from readerkit.errors import ReaderkitError
from readerkit.model.language import Told
from readerkit.quiz.bank import Bank
from readerkit.quiz.history import History
from readerkit.quiz.history_rows import timestamp
from readerkit.quiz.kinds.short import MARKS
from readerkit.quiz.messages import TextFinding, TryResult
from readerkit.quiz.prompts import LocatePrompt, Prompt, SketchPrompt
from readerkit.quiz.report import summary
from readerkit.quiz.selection import WantedQuiz
from readerkit.quiz.session import Session
from readerkit.quiz.variant import AnswerError
from readerkit.render.html.quiz import Feedback, Offer, QuizPage, Turn
from readerkit.render.html.site_model import SiteModel

Form = Mapping[str, Sequence[str]]
MAX_COUNT = 500

Shown = dict[str, datetime]
"""By session, when its question came on the page."""


class QuizDesk:
    """Takes the forms of the quiz pages; between them only the history remembers."""

    def __init__(self, book: Path | None) -> None:
        self._banks = Banks.at(book)
        self._shown: Shown = {}

    def turn(self, phase: int, form: Form, model: SiteModel) -> Turn:
        """Return the next turn on the page of a phase.

        It may be called from any thread: a connection to the history serves one call.
        """
        try:
            bank = self._banks.bank(phase, in_both=True)
            with closing(open_history()) as history:
                visit = Visit(bank, history, QuizPage(model, phase), self._shown)
                try:
                    return visit.turn(form)
                except ReaderkitError as error:
                    return visit.offer(str(error))
        except ReaderkitError as error:
            return Turn(notice=str(error))


@dataclass(frozen=True, slots=True)
class Visit:
    """One form, and what it is answered from."""

    bank: Bank
    history: History
    page: QuizPage
    shown: Shown

    def turn(self, form: Form) -> Turn:
        """Return the turn after a form.

        Raises:
            ReaderkitError: a form that asks for what cannot be done.
        """
        do = _first(form, "do")
        if do == "open":
            return self.offer()
        if do == "begin":
            session = self._begun(form)
            rules = exam_rules(session) if session.is_exam else ()
            return replace(self.ask(session), rules=rules)
        session = self._session(_first(form, "session"))
        if do == "next":
            return self.ask(session)
        if do == "hint":
            return self._hinted(session, form)
        if do in ("answer", "skip"):
            return self._answered(session, form, is_skipped=do == "skip")
        raise ReaderkitError(
            f"got '{do}', expected open, begin, next, answer, skip or hint"
        )

    def offer(self, notice: str = "") -> Turn:
        """Return the choice of quizzes, and the quiz that was left."""
        bank, moment = self.bank, timestamp(now())
        left = self.history.unfinished(bank.rules.phase, moment)
        minutes = f", {bank.rules.exam.minutes} min" if bank.rules.exam.minutes else ""
        known = summary(self.history, now=moment).topics
        topics = {name: known[name] for name in bank.topics() if name in known}
        answered = self.history.answers(left.id) if left else []
        return Turn(
            notice=notice,
            offer=Offer(
                topics=tuple(bank.topics()),
                count=bank.rules.count,
                exam=f"{bank.rules.exam.count}{minutes}",
                left=left.id if left else "",
                answered=len({row.position for row in answered if row.answer}),
                of=len(left.questions) if left else 0,
                mastery=topics,
            ),
        )

    def ask(
        self,
        session: Session,
        *,
        feedback: Feedback | None = None,
        notice: str = "",
        given: Sequence[str] = (),
        finding: TextFinding | None = None,
    ) -> Turn:
        """Return the current question, or the result where there is none left."""
        asked = session.question()
        while isinstance(asked, LocatePrompt) and not self._has_lines(asked):
            session.leave_out("")
            what = "Left out, as its lines are not on this site: {question}"
            notice = Told(what, question=asked.id)
            asked = session.question()
        if asked is None:
            score = session.finish()
            is_practice = session.is_exam and not score.official
            return Turn(
                self.page,
                notice=notice,
                score=score,
                rules=(PRACTICE_EXAM,) if is_practice else (),
            )
        if asked.attempt == 1:
            self.shown[session.row.id] = now()
        left = session.time_left()
        return Turn(
            self.page,
            session=session.row.id,
            position=asked.position,
            of=asked.of,
            attempt=asked.attempt,
            minutes_left="" if left is None else str(math.ceil(left / 60)),
            notice=notice,
            given=tuple(given),
            feedback=feedback,
            question=asked,
            finding=finding,
        )

    def _has_lines(self, asked: LocatePrompt) -> bool:
        return bool(self.page.place(asked.search, lines=None, is_linked=False).code)

    def _begun(self, form: Form) -> Session:
        exam = bool(_first(form, "exam"))
        topic, count = _first(form, "topic"), _first(form, "count")
        if count and not (count.isascii() and count.isdigit() and len(count) < 9):
            raise ReaderkitError(f"got '{count[:20]}' questions, expected a number")
        if count and not 1 <= int(count) <= MAX_COUNT:
            raise ReaderkitError(f"got {count} questions, expected 1 to {MAX_COUNT}")
        minutes = _first(form, "minutes")
        if minutes and not re.fullmatch("[1-9][0-9]{0,2}", minutes):
            raise ReaderkitError(f"got '{minutes[:20]}' minutes, expected 1 to 999")
        return begin(
            self.bank,
            self.history,
            WantedQuiz(
                topics=(topic,) if topic else (),
                count=int(count) if count and not exam else None,
                exam=exam,
                due=bool(_first(form, "due")) and not exam,
                minutes=float(minutes) if minutes else None,
            ),
        )

    def _session(self, name: str) -> Session:
        row = self.history.session(name)
        if row is None or row.phase != self.bank.rules.phase:
            raise ReaderkitError(f"no quiz '{name[:20]}' here: begin a new one")
        since = self.shown.get(name)
        return Session.resume(self.bank, self.history, row, clock=now, shown=since)

    def _hinted(self, session: Session, form: Form) -> Turn:
        # As with answers: a form sent twice must not pay for another hint.
        asked = session.question()
        if asked and _first(form, "hints") == str(len(asked.hints)):
            session.hint()
        return self.ask(session, given=form.get("answer", ()))

    def _answered(self, session: Session, form: Form, *, is_skipped: bool) -> Turn:
        # A form sent twice, or left in another window, must not answer what comes next.
        if _first(form, "at") != f"{session.position + 1}.{session.attempt}":
            return self.ask(session, notice=Told("That question was answered before."))
        asked = session.variant().prompt
        given = form.get("answer", ())
        try:
            text = "" if is_skipped else _typed(form, asked)
            if _is_to_look_at(session, asked.kind, form) and not is_skipped:
                return self.ask(session, given=given, finding=session.look(text))
            result = session.skip() if is_skipped else session.answer(text)
        except AnswerError as error:
            return self.ask(session, notice=error.args[0], given=given)
        except ReaderkitError:
            if session.time_left() == 0:
                return self.ask(session)
            raise
        if not isinstance(result, TryResult):
            return self.ask(session)  # an exam says nothing until the end
        feedback = Feedback(asked.prompt, text, result)
        if not result.done:
            return self.ask(session, feedback=feedback, given=given)
        return Turn(
            self.page,
            session=session.row.id,
            position=result.position,
            of=len(session.row.questions),
            feedback=feedback,
        )


def _first(form: Form, name: str) -> str:
    return next(iter(form.get(name, ())), "")


def _typed(form: Form, asked: Prompt) -> str:
    """Return an answer as it would be typed in a terminal."""
    parts = form.get("answer", ())
    text = " ".join(parts)
    if isinstance(asked, SketchPrompt):
        width = len(asked.columns)
        rows = (parts[at : at + width] for at in range(0, len(parts), width))
        return "\n".join(map(" ".join, rows))
    if asked.kind == "short" and _first(form, "looked"):
        return f"{' '.join(form.get('mark', ())) or '0'} {MARKS} {text}"
    return text


def _is_to_look_at(session: Session, kind: str, form: Form) -> bool:
    """Tell whether the reader is yet to see which points were found in a text."""
    return kind == "short" and not session.is_exam and not _first(form, "looked")
