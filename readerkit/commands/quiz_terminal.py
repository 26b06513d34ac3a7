"""The quiz for people: one question at a time, typed answers, feedback at once."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import replace
from typing import Any

import click

from readerkit.commands.quiz_files import (
    SourceLines,
    kept,
    numbered,
    with_lines,
)
from readerkit.errors import ReaderkitError
from readerkit.quiz.kinds.words import MARKS
from readerkit.quiz.scene import AnswerError, Place
from readerkit.quiz.session import Session
from readerkit.render.visible import visible
from readerkit.typed import typed
from readerkit.wording import counted

MAX_WIDTH = 88
MAX_SHOWN_LINES = 8
"""Of the code behind a mistake; the note has all of it."""
SKIP, QUIT = "-", "q"


def lead(session: Session, lines: SourceLines) -> dict[str, Any]:
    """Ask until the end, or until the reader leaves; return the result."""
    row = session.row
    count = counted(len(row.questions), "question")
    head = f"{session.bank.rules.title} · {count} · seed {row.seed}"
    _say(head, bold=True)
    _say(f"{SKIP} skips, {QUIT} leaves; every answer is kept at once.", dim=True)
    left = False
    while not left and (question := session.question()) is not None:
        left = not _ask(session, with_lines(question, lines), lines)
    if left:
        _say(f"Left. {kept(session)}")
        outcome = session.standing()
    else:
        if session.time_left() == 0:
            _say("The time is over.", bold=True)
        outcome = session.finish()
        if session.is_exam:
            _show_marked(session, lines)
    _show_outcome(outcome, session)
    return outcome


# --- one question ---


def _ask(session: Session, question: dict[str, Any], lines: SourceLines) -> bool:
    """Ask one question until it is done; return whether the reader stays."""
    _show_question(question, lines)
    while True:
        given = _read(question)
        if given == QUIT:
            return False
        try:
            result = session.skip() if given == SKIP else session.answer(given)
        except AnswerError as error:
            _say(str(error), fg="yellow")
            continue
        except ReaderkitError:
            if session.time_left() == 0:
                return True
            raise
        if session.is_exam:
            return True
        _show_result(result, lines, skipped=given == SKIP)
        if result["done"]:
            return True
        points = (
            "half" if result["tries_left"] == session.row.tries - 1 else "a quarter"
        )
        _say(
            f"Once more, for {points} of the points; {SKIP} shows the answer.", dim=True
        )


def _read(question: dict[str, Any]) -> str:
    if question.get("self_marked"):
        return _read_short(question)
    rows = question.get("rows")
    if not rows:
        return _prompt("> ")
    given = []
    for label in rows:
        line = _prompt(f"{label} > ")
        if line in (SKIP, QUIT):
            return line
        given.append(line)
    return "\n".join(given)


def _read_short(question: dict[str, Any]) -> str:
    text = _prompt("> ")
    if text in (SKIP, QUIT):
        return text
    _say("Which of these points did you make? Numbers, or nothing.", dim=True)
    for number, point in enumerate(question["rubric"], 1):
        _say(f"{number}  {point}", indent=2)
    marks = _line("points: ")
    return QUIT if marks is None else f"{marks} {MARKS} {text}"


def _prompt(label: str) -> str:
    while True:
        given = _line(label)
        if given is None:
            return QUIT
        if given.strip():
            return given.strip()
        _say(f"({SKIP} skips, {QUIT} leaves)", dim=True)


def _line(label: str) -> str | None:
    """Return the line that is typed; None where the input ends."""
    try:
        return str(
            click.prompt(label, prompt_suffix="", default="", show_default=False)
        )
    except click.Abort as error:
        # Click makes one of ^C and of the end of input; only ^C is an interruption.
        if not isinstance(error.__context__, EOFError):
            raise
        click.echo()
        return None


def _show_question(question: dict[str, Any], lines: SourceLines) -> None:
    click.echo()
    dots = "●" * question["difficulty"] + "○" * (3 - question["difficulty"])
    head = f"{question['position']}/{question['of']}  {question['topic']}  {dots}"
    _say(head, fg="cyan")
    _say(question["prompt"])
    for option in (*question.get("options", ()), *question.get("items", ())):
        _say(f"{option['label']}  {option['text']}", indent=2)
    if "left" in question:
        for side in ("left", "right"):
            click.echo()
            for entry in question[side]:
                _say(f"{entry['label']}  {entry['text']}", indent=2)
    if "search" in question:
        search = question["search"]
        _say(f"{search['path']}:{search['first']}-{search['last']}", dim=True)
        place = Place(**{key: search[key] for key in search.keys() - {"lines"}})
        _show_code(place, lines)
        count = place.last - place.first + 1
        if sys.stdout.isatty() and count + 4 > shutil.get_terminal_size().lines:
            _say(question["prompt"])  # the first one has scrolled away
    if "columns" in question:
        _say(f"Each row: {', '.join(question['columns'])}", dim=True)
    if not question.get("self_marked"):
        _say(f"({question['how']})", dim=True)


# --- what it earned ---


def _show_result(result: dict[str, Any], lines: SourceLines, *, skipped: bool) -> None:
    if result["right"]:
        _say(f"Right. {_points(result['points'])}", fg="green")
    elif not skipped:
        partly = f", {result['credit']:.0%} of it is right" if result["credit"] else ""
        _say(f"Not yet{partly}." if not result["done"] else f"Wrong{partly}.", fg="red")
    for remark in result["remarks"]:
        _say(remark["text"], indent=2)
        _show_place(remark["place"], lines)
    if result["done"]:
        _explain(result, lines)


def _explain(result: dict[str, Any], lines: SourceLines) -> None:
    if not result.get("right"):
        for number, line in enumerate(result["solution"].split("\n")):
            _say(f"{'Answer  ' if number == 0 else '        '}{line}", bold=True)
    _say(result["explanation"])
    _show_links(result, lines)


def _show_links(result: dict[str, Any], lines: SourceLines) -> None:
    for place in result["links"]:
        _show_link(_place(place), lines)
    for work in result["references"]:
        section = f", {work['section']}" if work["section"] else ""
        words = f"{work['authors']} {work['year']}, {work['title']}{section}"
        _say(f"→ {words}. {work['url']}", fg="blue", indent=2)


def _place(values: dict[str, Any]) -> Place:
    return Place(**{key: value for key, value in values.items() if key != "text"})


def _show_place(values: dict[str, Any] | None, lines: SourceLines) -> None:
    """Show the lines that refute an answer, the first few of them."""
    if values is None:
        return
    place = _place(values)
    _show_link(place, lines)
    last = min(place.last, place.first + MAX_SHOWN_LINES - 1)
    _show_code(replace(place, last=last), lines)
    if place.last > last:
        _say("…", indent=4)


def _show_link(place: Place, lines: SourceLines) -> None:
    _say(f"→ {place}", fg="blue", indent=2, wrap=False)
    if place.note:
        _say(f"  {typed('annotate', place.note)}", fg="blue", indent=2, wrap=False)
    if address := lines.address(place):
        _say(f"  {address}", dim=True, indent=2, wrap=False)


def _show_code(place: Place, lines: SourceLines) -> None:
    """Show lines of code: coloured and folded to fit a terminal, plain in a pipe."""
    if not sys.stdout.isatty():
        for line in numbered(lines.lines(place) or [], place.first):
            click.echo("    " + visible(line))
        return
    from readerkit.anchor import Span
    from readerkit.render.note_view import console, indented_code

    source = lines.source(place)
    if source is not None:
        screen = console()
        span = Span(place.path, place.first, place.last)
        screen.print(indented_code(source, span, screen.width, 4))


# --- the end ---


def _show_marked(session: Session, lines: SourceLines) -> None:
    for row in session.marked():
        click.echo()
        sign, colour = ("right", "green") if row["right"] else ("wrong", "red")
        _say(f"{row['position'] + 1}  {sign}  {row['question']}", fg=colour)
        if not row["right"]:
            _say(row["prompt"])
            _say(f"Yours   {row['answer'] or '-'}")
            _say(f"Answer  {row['solution']}", bold=True)
            _say(row["explanation"])
            _show_links(row, lines)


def _show_outcome(outcome: dict[str, Any], session: Session) -> None:
    click.echo()
    if "score" not in outcome:
        return
    low, high = outcome["interval"]
    share = f"{outcome['score']:.0%} of {counted(outcome['questions'], 'question')}"
    likely = f"(95% interval {low:.0%} to {high:.0%})"
    if "passed" in outcome:
        passes = f"{outcome['pass_mark']:.0%} passes"
        verdict = "passed" if outcome["passed"] else passes
        _say(f"Score {share} {likely}: {verdict}", bold=True)
    else:
        _say(
            f"{outcome['answered']} of {outcome['of']} answered: so far {share} "
            f"{likely}. Part of a quiz has no verdict.",
            bold=True,
        )
    if outcome["choice_corrected"] is not None:
        _say(
            f"Choice questions without luck, (R - W/(k-1))/N: "
            f"{outcome['choice_corrected']:.0%} of {outcome['choice_questions']}"
        )
    for topic, each in outcome["topics"].items():
        low, high = each["interval"]
        _say(
            f"{topic:20} {each['points']:g} of {each['questions']}"
            f"   {low:.0%} to {high:.0%}",
            indent=2,
        )
    if outcome["read_next"]:
        _say("Read next:")
        for each in outcome["read_next"]:
            _say(f"{each['command']}   {each['title']}", indent=2, wrap=False)
    _say(
        f"Mistakes come back from tomorrow: {typed('quiz', 'review')}. "
        f"The same questions again: --seed {session.row.seed}",
        dim=True,
    )


def _points(points: float) -> str:
    return "1 point." if points == 1 else f"{points:g} points."


def _say(text: str, *, indent: int = 0, wrap: bool = True, **style: Any) -> None:
    """Print a paragraph at a readable width, with nothing a terminal would obey."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else MAX_WIDTH
    shown = visible(text)
    if wrap:
        shown = textwrap.fill(
            shown,
            width=max(min(columns, MAX_WIDTH), 20),
            initial_indent=" " * indent,
            subsequent_indent=" " * (indent + 3 if indent else 0),
            break_long_words=False,
            break_on_hyphens=False,
        )
    else:
        shown = " " * indent + shown
    click.echo(click.style(shown, **style) if style else shown)
