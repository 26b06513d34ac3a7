"""The quiz for people: one question at a time, typed answers, feedback at once."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import dataclass
from typing import Any

import click
from msgspec.structs import replace

from readerkit.app.interface_words import say_in
from readerkit.app.quiz_banks import (
    SourceLines,
    kept,
    numbered,
    with_lines,
)
from readerkit.errors import ReaderkitError
from readerkit.model.language import Say, said
from readerkit.quiz.kinds.words import MARKS
from readerkit.quiz.session import Session
from readerkit.quiz.variant_context import AnswerError, ResolvedPlace
from readerkit.render.terminal_safe import visible
from readerkit.terminal.folded import tell
from readerkit.wording.next_command import typed
from readerkit.wording.nouns import counted

MAX_WIDTH = 88
MAX_SHOWN_LINES = 8
"""Of the code behind a mistake; the note has all of it."""
SKIP, QUIT = "-", "q"


@dataclass(frozen=True, slots=True)
class _Desk:
    """Where the code of questions is, and the words that are said about answers."""

    lines: SourceLines
    say: Say

    def counted(self, number: int) -> str:
        """Return so many questions."""
        return counted(number, self.say("question"), self.say("questions"))


def lead(session: Session, lines: SourceLines, language: str = "en") -> dict[str, Any]:
    """Ask until the end, or until the reader leaves; return the result.

    Questions are in English: in another language what is said of them is not.
    """
    row, desk = session.row, _Desk(lines, say_in(language))
    say = desk.say
    count = desk.counted(len(row.questions))
    seed = say("seed {seed}").format(seed=row.seed)
    head = f"{session.bank.rules.title} · {count} · {seed}"
    _say(head, bold=True)
    _say(say("- skips, q leaves; every answer is kept at once."), dim=True)
    if language != "en":
        _say(say("The questions are in English: not translated yet."), dim=True)
    left = False
    while not left and (question := session.question()) is not None:
        left = not _ask(session, with_lines(question, lines), desk)
    if left:
        _say(f"{say('Left.')} {kept(session, say)}")
        outcome = session.standing()
    else:
        if session.time_left() == 0:
            _say(say("The time is over."), bold=True)
        outcome = session.finish()
        if session.is_exam:
            _show_marked(session, desk)
    _show_outcome(outcome, session, desk)
    return outcome


# --- one question ---


def _ask(session: Session, question: dict[str, Any], desk: _Desk) -> bool:
    """Ask one question until it is done; return whether the reader stays."""
    _show_question(question, desk)
    while True:
        given = _read(question, desk.say)
        if given == QUIT:
            return False
        try:
            result = session.skip() if given == SKIP else session.answer(given)
        except AnswerError as error:
            _say(said(error.args[0], desk.say), fg="yellow")
            continue
        except ReaderkitError:
            if session.time_left() == 0:
                return True
            raise
        if session.is_exam:
            return True
        _show_result(result, desk, skipped=given == SKIP)
        if result["done"]:
            return True
        is_second = result["tries_left"] == session.row.tries - 1
        again = desk.say("Once more, for {share} of the points; - shows the answer.")
        share = desk.say("half" if is_second else "a quarter")
        _say(again.format(share=share), dim=True)


def _read(question: dict[str, Any], say: Say) -> str:
    if question.get("self_marked"):
        return _read_short(question, say)
    rows = question.get("rows")
    if not rows:
        return _prompt("> ", say)
    given = []
    for label in rows:
        line = _prompt(f"{label} > ", say)
        if line in (SKIP, QUIT):
            return line
        given.append(line)
    return "\n".join(given)


def _read_short(question: dict[str, Any], say: Say) -> str:
    text = _prompt("> ", say)
    if text in (SKIP, QUIT):
        return text
    which = "Which of these points did you make? Numbers, or nothing."
    _say(say(which), dim=True)
    for number, point in enumerate(question["rubric"], 1):
        _say(f"{number}  {point}", indent=2)
    marks = _line(say("points: "))
    return QUIT if marks is None else f"{marks} {MARKS} {text}"


def _prompt(label: str, say: Say) -> str:
    while True:
        given = _line(label)
        if given is None:
            return QUIT
        if given.strip():
            return given.strip()
        _say(say("(- skips, q leaves)"), dim=True)


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


def _show_question(question: dict[str, Any], desk: _Desk) -> None:
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
        place = ResolvedPlace(**{key: search[key] for key in search.keys() - {"lines"}})
        _show_code(place, desk)
        count = place.last - place.first + 1
        if sys.stdout.isatty() and count + 4 > shutil.get_terminal_size().lines:
            _say(question["prompt"])  # the first one has scrolled away
    if "columns" in question:
        _say(f"{desk.say('Each row')}: {', '.join(question['columns'])}", dim=True)
    if not question.get("self_marked"):
        _say(f"({said(question['how'], desk.say)})", dim=True)


# --- what it earned ---


def _show_result(result: dict[str, Any], desk: _Desk, *, skipped: bool) -> None:
    say = desk.say
    if result["right"]:
        _say(f"{say('Right.')} {_points(result['points'], say)}", fg="green")
    elif not skipped:
        share = say("{share} of it is right").format(share=f"{result['credit']:.0%}")
        partly = f", {share}" if result["credit"] else ""
        _say(f"{say('Wrong' if result['done'] else 'Not yet')}{partly}.", fg="red")
    for remark in result["remarks"]:
        _say(said(remark["text"], say), indent=2)
        _show_place(remark["place"], desk)
    if result["done"]:
        _explain(result, desk)


def _explain(result: dict[str, Any], desk: _Desk) -> None:
    if not result.get("right"):
        label = f"{desk.say('Answer')}  "
        for number, line in enumerate(result["solution"].split("\n")):
            _say(f"{' ' * len(label) if number else label}{line}", bold=True)
    _say(result["explanation"])
    _show_links(result, desk)


def _show_links(result: dict[str, Any], desk: _Desk) -> None:
    for place in result["links"]:
        _show_link(_place(place), desk)
    for work in result["references"]:
        section = f", {work['section']}" if work["section"] else ""
        words = f"{work['authors']} {work['year']}, {work['title']}{section}"
        _say(f"→ {words}. {work['url']}", fg="blue", indent=2)


def _place(values: dict[str, Any]) -> ResolvedPlace:
    return ResolvedPlace(
        **{key: value for key, value in values.items() if key != "text"}
    )


def _show_place(values: dict[str, Any] | None, desk: _Desk) -> None:
    """Show the lines that refute an answer, the first few of them."""
    if values is None:
        return
    place = _place(values)
    _show_link(place, desk)
    last = min(place.last, place.first + MAX_SHOWN_LINES - 1)
    _show_code(replace(place, last=last), desk)
    if place.last > last:
        _say("…", indent=4)


def _show_link(place: ResolvedPlace, desk: _Desk) -> None:
    _say(f"→ {place}", fg="blue", indent=2, wrap=False)
    if place.note:
        _say(f"  {typed('annotate', place.note)}", fg="blue", indent=2, wrap=False)
    if address := desk.lines.address(place):
        _say(f"  {address}", dim=True, indent=2, wrap=False)


def _show_code(place: ResolvedPlace, desk: _Desk) -> None:
    """Show lines of code: coloured and folded to fit a terminal, plain in a pipe."""
    if not sys.stdout.isatty():
        for line in numbered(desk.lines.lines(place) or [], place.first):
            click.echo("    " + visible(line))
        return
    from readerkit.model.anchor import Span
    from readerkit.render.note_view import console, indented_code

    source = desk.lines.source(place)
    if source is not None:
        screen = console()
        span = Span(place.path, place.first, place.last)
        screen.print(indented_code(source, span, screen.width, 4))


# --- the end ---


def _show_marked(session: Session, desk: _Desk) -> None:
    for row in session.marked():
        click.echo()
        sign, colour = ("right", "green") if row["right"] else ("wrong", "red")
        sign = desk.say(sign)
        _say(f"{row['position'] + 1}  {sign}  {row['question']}", fg=colour)
        if not row["right"]:
            _say(row["prompt"])
            _say(f"{desk.say('Yours'):8}{row['answer'] or '-'}")
            _say(f"{desk.say('Answer')}  {row['solution']}", bold=True)
            _say(row["explanation"])
            _show_links(row, desk)


def _show_outcome(outcome: dict[str, Any], session: Session, desk: _Desk) -> None:
    click.echo()
    if "score" not in outcome:
        return
    say = desk.say
    low, high = (f"{each:.0%}" for each in outcome["interval"])
    told = {
        "share": f"{outcome['score']:.0%}",
        "questions": desk.counted(outcome["questions"]),
        "low": low,
        "high": high,
    }
    if "passed" in outcome:
        passes = say("{share} passes").format(share=f"{outcome['pass_mark']:.0%}")
        verdict = say("passed") if outcome["passed"] else passes
        score = "Score {share} of {questions} (95% interval {low} to {high}): {verdict}"
        _say(say(score).format(**told, verdict=verdict), bold=True)
    else:
        part = (
            "{done} of {of} answered: so far {share} of {questions} "
            "(95% interval {low} to {high}). Part of a quiz has no verdict."
        )
        done = {"done": outcome["answered"], "of": outcome["of"]}
        _say(say(part).format(**told, **done), bold=True)
    if outcome["choice_corrected"] is not None:
        luck = "Choice questions without luck, (R - W/(k-1))/N: {share} of {questions}"
        share, among = f"{outcome['choice_corrected']:.0%}", outcome["choice_questions"]
        _say(say(luck).format(share=share, questions=among))
    for topic, each in outcome["topics"].items():
        low, high = (f"{end:.0%}" for end in each["interval"])
        row = say("{points} of {questions}   {low} to {high}").format(
            points=f"{each['points']:g}",
            questions=each["questions"],
            low=low,
            high=high,
        )
        _say(f"{topic:20} {row}", indent=2)
    if outcome["read_next"]:
        _say(say("Read next:"))
        for each in outcome["read_next"]:
            tell(f"  {each['command']}   {each['title']}")
    again = (
        "Mistakes come back from tomorrow: {review}. "
        "The same questions again: --seed {seed}"
    )
    review = typed("quiz", "review")
    _say(say(again).format(review=review, seed=session.row.seed), dim=True)


def _points(points: float, say: Say) -> str:
    if points == 1:
        return say("1 point.")
    return say("{points} points.").format(points=f"{points:g}")


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
