"""The quiz for people: one question at a time, typed answers, feedback at once."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from readerkit.app.begin_quiz import exam_rules
from readerkit.app.cited_lines import SourceLines, without_lines
from readerkit.app.quiz_banks import kept
from readerkit.errors import ReaderkitError
from readerkit.model.language import Told
from readerkit.quiz.kinds.short import MARKS
from readerkit.quiz.messages import Standing, TryResult
from readerkit.quiz.prompts import LocatePrompt, Prompt, ShortPrompt, SketchPrompt
from readerkit.quiz.session import Session
from readerkit.quiz.variant import AnswerError
from readerkit.terminal.quiz_screen import QuizScreen
from readerkit.wording.next_command import typed

SKIP, QUIT, CODE, HINT = "-", "q", "c", "hint"
FLAG = re.compile(r"flag(?:\s+|$)")
"""Before words on what is wrong with a question."""


def lead(session: Session, lines: SourceLines, language: str = "en") -> Standing:
    """Ask until the end, or until the reader leaves; return the result."""
    row, screen = session.row, QuizScreen(lines, language, session.bank.questions)
    title = screen.said(session.bank.rules.title)
    count = screen.counted(len(row.questions))
    if session.is_exam:
        screen.tell(f"{title} · {count}", bold=True)
        for rule in exam_rules(session):
            screen.tell(rule)
    else:
        seed = Told("seed {seed}", seed=row.seed)
        screen.tell(f"{title} · {count} · {screen.said(seed)}", bold=True)
    if session.due is not None:
        wait = session.due - len(row.questions)
        screen.tell(Told("{due} due today; {wait} wait.", due=session.due, wait=wait))
    keys = "- skips, q leaves, flag WORDS reports a fault; all is kept at once."
    screen.tell(Told(keys), dim=True)
    for each in session.left_out:
        screen.tell_left_out(each)
    left = False
    while not left and (question := session.question()) is not None:
        if left_out := without_lines(session, question, lines):
            screen.tell_left_out(left_out)
            continue
        left = not _ask(session, question, screen) and not session.is_over
    if left:
        screen.tell(Told("Left."), kept(session))
        outcome = session.standing()
    else:
        if session.time_left() == 0:
            screen.tell(Told("The time is over."), bold=True)
        outcome = session.finish()
    screen.show_outcome(outcome)
    return outcome


# --- one question ---


def _ask(session: Session, question: Prompt, screen: QuizScreen) -> bool:
    """Ask one question until it is done; return whether the reader stays."""
    screen.show_question(question)
    before = list(question.given) if isinstance(question, SketchPrompt) else []
    while True:
        try:
            given = _read(session, question, screen, before)
            if given == QUIT:
                return False
            if given == CODE and isinstance(question, LocatePrompt):
                screen.show_search(question)
                continue
            if FLAG.match(given):
                _flag(session, question, given, screen)
                continue
            if given == HINT:
                screen.show_hint(session.hint())
                continue
            result = session.skip() if given == SKIP else session.answer(given)
        except AnswerError as error:
            screen.tell(error.args[0], fg="yellow")
            continue
        except ReaderkitError:
            if session.time_left() == 0:
                return True
            raise
        if not isinstance(result, TryResult):
            return True  # an exam says nothing until the end
        screen.show_result(result, skipped=given == SKIP)
        if result.done:
            return _has_read(session, question, screen)
        is_second = result.tries_left == session.row.tries - 1
        share = Told("half" if is_second else "a quarter")
        again = "Once more, for {share} of the points; - shows the answer."
        screen.tell(Told(again, share=share), dim=True)


def _has_read(session: Session, question: Prompt, screen: QuizScreen) -> bool:
    """Let a person read what was said, and speak of it; return whether they stay."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    while True:
        given = _line(screen.said(Told("Enter: go on   q: leave ")))
        if given is None or not FLAG.match(given.strip()):
            return given is not None and given.strip() != QUIT
        _flag(session, question, given.strip(), screen)


def _flag(session: Session, question: Prompt, given: str, screen: QuizScreen) -> None:
    """Keep what a person says of a question; ask for words where they say none."""
    words = FLAG.sub("", given, count=1)
    if not words:
        screen.tell(Told("flag what? flag WORDS"), fg="yellow")
        return
    session.flag(words, question.id)
    listed = typed("quiz", "list", str(session.row.phase), "--flagged")
    screen.tell(Told("Flagged, and kept."), dim=True)
    screen.tell(listed, fg="blue", indent=4, wrap=False)


def _read(
    session: Session, question: Prompt, screen: QuizScreen, before: list[str]
) -> str:
    """Return what is typed; ``before`` has the rows of a grid, and keeps them."""
    if isinstance(question, ShortPrompt):
        return _read_text(session, screen)
    if not isinstance(question, SketchPrompt):
        return _prompt("> ", screen)
    if before:
        screen.tell(Told("Enter keeps a row as it stands in brackets."), dim=True)
    for at, label in enumerate(question.rows):
        old = before[at].removeprefix(f"{label}: ") if before[at:] else ""
        line = _prompt(f"{label} [{old}] > " if old else f"{label} > ", screen, old)
        if _is_command(line):
            return line
        before[at : at + 1] = [line]
    return "\n".join(before)


def _read_text(session: Session, screen: QuizScreen) -> str:
    """Return what is typed until an empty line, with the reader's own marks if any."""
    screen.tell(Told("An empty line ends it."), dim=True)
    lines = [_prompt("> ", screen)]
    is_answer = not _is_command(lines[0])
    while is_answer:
        line = _line("> ")
        if not (line or "").strip():
            break
        lines.append(str(line).strip())
    text = "\n".join(lines)
    if session.is_exam or not is_answer:
        return text
    screen.show_finding(session.look(text))
    agree = Told("Enter takes this; or type the points you made, 0 for none: ")
    while (marks := _line(screen.said(agree))) is not None:
        if not re.fullmatch(r"[\d\s,]*", marks):
            unread = "got '{got}', expected points by their numbers: 1, 3"
            screen.tell(Told(unread, got=marks.strip()[:40]), fg="yellow")
            continue
        given = f"{marks.strip()} {MARKS} {text}"
        try:
            session.look(given)
        except AnswerError as error:
            screen.tell(error.args[0], fg="yellow")
        else:
            return given
    return QUIT


def _is_command(line: str) -> bool:
    """Tell whether a line is no part of an answer."""
    return line in (SKIP, QUIT, HINT) or bool(FLAG.match(line))


def _prompt(label: str, screen: QuizScreen, kept: str = "") -> str:
    while True:
        given = _line(label)
        if given is None:
            return QUIT
        given = given.strip() or kept
        if given.strip():
            return given.strip()
        screen.tell(Told("(- skips, q leaves)"), dim=True)


@contextmanager
def _drawn_again(label: str) -> Iterator[None]:
    """Show a prompt once more after ^Z and fg: what was typed has gone with it."""
    before = signal.signal(signal.SIGCONT, lambda *_: click.echo(label, nl=False))
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, before)


def _line(label: str) -> str | None:
    """Return the line that is typed; None where the input ends."""
    try:
        with _drawn_again(label):
            return str(
                click.prompt(label, prompt_suffix="", default="", show_default=False)
            )
    except click.Abort as error:
        # Click makes one of ^C and of the end of input; only ^C is an interruption.
        if not isinstance(error.__context__, EOFError):
            raise
        click.echo()
        return None
