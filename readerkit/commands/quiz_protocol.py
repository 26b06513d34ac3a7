"""The quiz for programs: a JSON object a line, questions out, answers in.

``quizzes/README.md`` documents every message.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from readerkit.commands.quiz_files import SourceLines, with_lines, with_pages
from readerkit.errors import ReaderkitError
from readerkit.quiz.scene import AnswerError
from readerkit.quiz.session import Session

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
        result = _next_result(session)
        if result is None:
            break
        _say("result", **with_pages(result))
    done = session.is_over
    outcome = session.finish() if done else session.standing()
    marked = session.marked() if session.is_exam and done else None
    extra = {"marked": with_pages(marked)} if marked else {}
    _say("score", complete=done, **outcome, **extra)
    return outcome


def _next_result(session: Session) -> dict[str, Any] | None:
    """Return what the next line that can be read earns; None where it ends the quiz."""
    while line := sys.stdin.readline(MAX_LINE):
        if not line.strip():
            continue
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise ValueError("not an object")
        except (ValueError, RecursionError) as error:
            _say("error", text=f'got {error}, expected {{"answer": "..."}}')
            continue
        if request.get("stop"):
            return None
        try:
            if request.get("skip"):
                return session.skip()
            return session.answer(_answer_text(request.get("answer")))
        except AnswerError as error:
            _say("error", text=str(error))
        except ReaderkitError as error:
            if session.question() is not None:
                raise
            _say("error", text=str(error))
            return None
    return None


def _answer_text(answer: Any) -> str:
    """Return an answer as the engine reads it: lists become text."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, (int, float)) and not isinstance(answer, bool):
        return str(answer)
    if isinstance(answer, list):
        rows = [
            " ".join(map(str, row)) if isinstance(row, list) else str(row)
            for row in answer
        ]
        nested = any(isinstance(row, list) for row in answer)
        return ("\n" if nested else " ").join(rows)
    raise AnswerError(
        f"got {json.dumps(answer)[:60]}, expected text, a number or a list as 'answer'"
    )


def _say(message: str, /, **values: Any) -> None:
    click.echo(json.dumps({"type": message, **values}))
    sys.stdout.flush()
