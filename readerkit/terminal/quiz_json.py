"""The quiz for programs: a JSON object a line, questions out, answers in.

``quizzes/README.md`` documents every message; ``quiz.messages`` declares them.
"""

from __future__ import annotations

import sys
from contextlib import suppress

import click
from msgspec import MsgspecError, Struct
from msgspec.json import decode
from msgspec.structs import replace

from readerkit.app.cited_lines import SourceLines, without_lines
from readerkit.errors import ReaderkitError
from readerkit.quiz.messages import Recorded, Refusal, Request, Standing, encode
from readerkit.quiz.prompts import LocatePrompt, Prompt, SketchPrompt
from readerkit.quiz.session import Session
from readerkit.quiz.variant import AnswerError

MAX_LINE = 100_000
"""Characters that a message may have."""
_REQUESTS = ("answer", "flag", "hint", "look", "skip", "stop")
_NOTHING = Request()


def lead(session: Session, lines: SourceLines) -> Standing:
    """Ask on stdout, take answers from stdin; return the result."""
    say(session.begun())
    for each in session.left_out:
        say(each)
    while (question := session.question()) is not None:
        if left_out := without_lines(session, question, lines):
            say(left_out)
            continue
        say(_with_lines(question, lines))
        result = _next_result(session, question)
        if result is None:
            break
        say(result)
    outcome = session.finish() if session.is_over else session.standing()
    say(outcome)
    return outcome


def say(message: Struct) -> None:
    """Write a message as JSON on a line, at once."""
    click.echo(encode(message))
    sys.stdout.flush()


def _with_lines(question: Prompt, lines: SourceLines) -> Prompt:
    """Return a question with the code it asks about, where it asks about code."""
    if not isinstance(question, LocatePrompt):
        return question
    text = lines.lines(question.search)
    shown = replace(question.search, lines=text and tuple(text))
    return replace(question, search=shown)


def _next_result(session: Session, question: Prompt) -> Recorded | None:
    """Return the result of the next readable line; None where it ends the quiz."""
    while line := sys.stdin.readline(MAX_LINE + 1):
        if not line.strip():
            continue
        try:
            _check_whole(line)
            request = _request(line)
            if request.stop:
                return None
            if request.skip:
                return session.skip()
            if request.hint:
                say(session.hint())
                continue
            if request.flag:
                say(session.flag(request.flag, request.id))
                continue
            if request.look is not None:
                say(session.look(request.look))
                continue
            return session.answer(_answer_text(request.answer, question))
        except AnswerError as error:
            say(Refusal(str(error)))
        except ReaderkitError as error:
            if session.question() is not None:
                raise
            say(Refusal(str(error)))
            return None
    return None


def _check_whole(line: str) -> None:
    """Refuse a line that is too long, once: its rest is no message of its own."""
    if len(line) <= MAX_LINE or line.endswith("\n"):
        return
    rest = line
    while rest and not rest.endswith("\n"):
        rest = sys.stdin.readline(MAX_LINE)
    raise AnswerError(
        f"got '{line.strip()[:60]}' and more, expected a line of at most "
        f"{MAX_LINE:,} characters"
    )


def _request(line: str) -> Request:
    with suppress(MsgspecError, RecursionError, UnicodeError):
        # A byte order mark says nothing here: some shells begin what they pipe with it.
        request = decode(line.removeprefix("\ufeff"), type=Request)
        wants = [n for n in _REQUESTS if getattr(request, n) != getattr(_NOTHING, n)]
        if len(wants) > 1:
            raise AnswerError(
                f"got {' and '.join(wants)} on a line, expected one of them"
            )
        if wants:
            return request
    raise AnswerError(
        f"got '{line.strip()[:60]}', expected a JSON object on one line, its answer "
        'text, a number, a list or rows by label: {"answer": "41.7 GB"}'
    )


def _answer_text(answer: object, question: Prompt) -> str:
    """Return an answer as the engine reads it: lists become text."""
    if isinstance(answer, dict):  # rows of a grid by their labels
        rows = [
            f"{label}: {_row_text(row) if isinstance(row, list) else row}"
            for label, row in answer.items()
        ]
        return "\n".join(rows)
    if not isinstance(answer, list):
        if isinstance(answer, float) and answer.is_integer():
            return str(int(answer))
        return str(answer)
    is_grid = isinstance(question, SketchPrompt)
    is_narrow = isinstance(question, SketchPrompt) and len(question.columns) == 1
    rows = [_row_text(row, is_narrow=is_narrow) for row in answer]
    nested = any(isinstance(row, list) for row in answer)
    return ("\n" if nested or is_grid else " ").join(rows)


def _row_text(row: object, *, is_narrow: bool = False) -> str:
    if not isinstance(row, list):
        return str(row)
    # Of a grid with one column a row is one cell, with or without a list around it.
    if is_narrow and len(row) > 1:
        return _cell_text(row)
    return " ".join(map(_cell_text, row))


def _cell_text(cell: object) -> str:
    """Return a cell without blanks: a list is a shape or ranks, one of lists groups."""
    if not isinstance(cell, list):
        return "".join(str(cell).split())
    if any(isinstance(part, list) for part in cell):
        return "|".join(map(_cell_text, cell))
    return ",".join(map(_cell_text, cell))
