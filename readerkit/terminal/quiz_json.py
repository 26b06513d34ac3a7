"""The quiz for programs: a JSON object a line, questions out, answers in.

``quizzes/README.md`` documents every message.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from readerkit.app.quiz_banks import SourceLines, with_lines, with_pages
from readerkit.errors import ReaderkitError
from readerkit.quiz.session import Session
from readerkit.quiz.variant_context import AnswerError

PROTOCOL = 1
MAX_LINE = 100_000


def lead(session: Session, lines: SourceLines) -> dict[str, Any]:
    """Ask on stdout, take answers from stdin; return the result."""
    row = session.row
    _say(
        "session",
        protocol=PROTOCOL,
        id=row.id,
        phase=row.phase,
        seed=row.seed,
        mode=row.mode,
        questions=len(row.questions),
        answered=session.answered,
        tries=row.tries,
        seconds_left=session.time_left(),
    )
    while (question := session.question()) is not None:
        _say("question", **with_lines(question, lines))
        result = _next_result(session, columns=len(question.get("columns", ())))
        if result is None:
            break
        _say("result", **with_pages(result))
    done = session.is_over
    outcome = session.finish() if done else session.standing()
    marked = session.marked() if session.is_exam and done else None
    extra = {"marked": with_pages(marked)} if marked else {}
    _say("score", complete=done, **outcome, **extra)
    return outcome


def _next_result(session: Session, *, columns: int) -> dict[str, Any] | None:
    """Return the result of the next readable line; None where it ends the quiz."""
    while line := sys.stdin.readline(MAX_LINE):
        if not line.strip():
            continue
        request = _request(line)
        if request is None:
            got = line.strip()[:60]
            expected = 'a JSON object on one line: {"answer": "17.5 GB"}'
            _say("error", text=f"got '{got}', expected {expected}")
            continue
        if request.get("stop"):
            return None
        try:
            if request.get("skip"):
                return session.skip()
            return session.answer(_answer_text(request.get("answer"), columns))
        except AnswerError as error:
            _say("error", text=str(error))
        except ReaderkitError as error:
            if session.question() is not None:
                raise
            _say("error", text=str(error))
            return None
    return None


def _request(line: str) -> dict[str, Any] | None:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return request if isinstance(request, dict) else None


def _answer_text(answer: Any, columns: int) -> str:
    """Return an answer as the engine reads it: lists become text."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, (int, float)) and not isinstance(answer, bool):
        return str(answer)
    if isinstance(answer, list):
        rows = [
            _row_text(row, columns) if isinstance(row, list) else str(row)
            for row in answer
        ]
        nested = any(isinstance(row, list) for row in answer)
        return ("\n" if nested else " ").join(rows)
    raise AnswerError(
        f"got {json.dumps(answer)[:60]}, expected text, a number or a list as 'answer'"
    )


def _row_text(row: list[Any], columns: int) -> str:
    # Of a grid with one column a row is one cell, with or without a list around it.
    if columns == 1 and len(row) > 1:
        return _cell_text(row)
    return " ".join(map(_cell_text, row))


def _cell_text(cell: Any) -> str:
    """Return a cell without blanks: a list is a shape or ranks, one of lists groups."""
    if not isinstance(cell, list):
        return "".join(str(cell).split())
    if any(isinstance(part, list) for part in cell):
        return "|".join(map(_cell_text, cell))
    return ",".join(map(_cell_text, cell))


def _say(message: str, /, **values: Any) -> None:
    click.echo(json.dumps({"type": message, **values}))
    sys.stdout.flush()
