"""The quiz for people: one question at a time, typed answers, feedback at once."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import dataclass
from typing import Any

import click
from msgspec import UNSET
from msgspec.structs import replace

from readerkit.app.interface_words import say_in
from readerkit.app.quiz_banks import SourceLines, kept, numbered
from readerkit.errors import ReaderkitError
from readerkit.model.language import Say, said
from readerkit.quiz.kinds.words import MARKS
from readerkit.quiz.messages import (
    ChoicePrompt,
    CitedLines,
    DoneResult,
    Labelled,
    LocatePrompt,
    MatchPrompt,
    OrderPrompt,
    Prompt,
    Score,
    Share,
    ShortPrompt,
    SketchPrompt,
    Solved,
    Standing,
    TryResult,
)
from readerkit.quiz.session import Session
from readerkit.quiz.variant import AnswerError
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


def lead(session: Session, lines: SourceLines, language: str = "en") -> Standing:
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
        left = not _ask(session, question, desk)
    if left:
        _say(f"{say('Left.')} {kept(session, say)}")
        outcome = session.standing()
    else:
        if session.time_left() == 0:
            _say(say("The time is over."), bold=True)
        outcome = session.finish()
    _show_outcome(outcome, desk)
    return outcome


# --- one question ---


def _ask(session: Session, question: Prompt, desk: _Desk) -> bool:
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
        if not isinstance(result, TryResult):
            return True  # an exam says nothing until the end
        _show_result(result, desk, skipped=given == SKIP)
        if result.done:
            return True
        is_second = result.tries_left == session.row.tries - 1
        again = desk.say("Once more, for {share} of the points; - shows the answer.")
        share = desk.say("half" if is_second else "a quarter")
        _say(again.format(share=share), dim=True)


def _read(question: Prompt, say: Say) -> str:
    if isinstance(question, ShortPrompt):
        return _read_short(question, say)
    labels = question.rows if isinstance(question, SketchPrompt) else ("",)
    given = []
    for label in labels:
        line = _prompt(f"{label} > ".lstrip(), say)
        if line in (SKIP, QUIT):
            return line
        given.append(line)
    return "\n".join(given)


def _read_short(question: ShortPrompt, say: Say) -> str:
    text = _prompt("> ", say)
    if text in (SKIP, QUIT):
        return text
    which = "Which of these points did you make? Numbers, or nothing."
    _say(say(which), dim=True)
    _show_entries(Labelled.each(range(1, len(question.rubric) + 1), question.rubric))
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


def _show_question(question: Prompt, desk: _Desk) -> None:
    click.echo()
    dots = "●" * question.difficulty + "○" * (3 - question.difficulty)
    head = f"{question.position}/{question.of}  {question.topic}  {dots}"
    _say(head, fg="cyan")
    _say(question.prompt)
    match question:
        case ChoicePrompt(options=entries) | OrderPrompt(items=entries):
            _show_entries(entries)
        case MatchPrompt(left=left, right=right):
            for side in (left, right):
                click.echo()
                _show_entries(side)
        case LocatePrompt(search=search):
            _show_search(question, search, desk)
        case SketchPrompt(columns=columns):
            _say(f"{desk.say('Each row')}: {', '.join(columns)}", dim=True)
    if not isinstance(question, ShortPrompt):
        _say(f"({said(question.how, desk.say)})", dim=True)


def _show_entries(entries: tuple[Labelled, ...]) -> None:
    for entry in entries:
        _say(f"{entry.label}  {entry.text}", indent=2)


def _show_search(question: Prompt, search: CitedLines, desk: _Desk) -> None:
    _say(f"{search.path}:{search.first}-{search.last}", dim=True)
    desk.lines.lines(search, fetch=True)
    _show_code(search, desk)
    count = search.last - search.first + 1
    if sys.stdout.isatty() and count + 4 > shutil.get_terminal_size().lines:
        _say(question.prompt)  # the first one has scrolled away


# --- what it earned ---


def _show_result(result: TryResult, desk: _Desk, *, skipped: bool) -> None:
    say = desk.say
    if result.right:
        _say(f"{say('Right.')} {_points(result.points, say)}", fg="green")
    elif not skipped:
        share = say("{share} of it is right").format(share=f"{result.credit:.0%}")
        partly = f", {share}" if result.credit else ""
        _say(f"{say('Wrong' if result.done else 'Not yet')}{partly}.", fg="red")
    for remark in result.remarks:
        _say(said(remark.text, say), indent=2)
        if remark.place:
            _show_place(remark.place, desk)
    if isinstance(result, DoneResult):
        if not result.right:
            _show_key(result, desk)
        _explain(result, desk)


def _show_key(told: Solved, desk: _Desk) -> None:
    label = f"{desk.say('Answer')}  "
    for number, line in enumerate(told.solution.split("\n")):
        _say(f"{' ' * len(label) if number else label}{line}", bold=True)


def _explain(told: Solved, desk: _Desk) -> None:
    _say(told.explanation)
    for place in told.links:
        _show_link(place, desk)
    for work in told.references:
        section = f", {work.section}" if work.section else ""
        words = f"{work.authors} {work.year}, {work.title}{section}"
        _say(f"→ {words}. {work.url}", fg="blue", indent=2)


def _show_place(place: CitedLines, desk: _Desk) -> None:
    """Show the lines that refute an answer, the first few of them."""
    _show_link(place, desk)
    last = min(place.last, place.first + MAX_SHOWN_LINES - 1)
    _show_code(replace(place, last=last), desk)
    if place.last > last:
        _say("…", indent=4)


def _show_link(place: CitedLines, desk: _Desk) -> None:
    _say(f"→ {place}", fg="blue", indent=2, wrap=False)
    if place.note:
        _say(f"  {typed('annotate', place.note)}", fg="blue", indent=2, wrap=False)
    if address := desk.lines.address(place):
        _say(f"  {address}", dim=True, indent=2, wrap=False)


def _show_code(place: CitedLines, desk: _Desk) -> None:
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


def _show_marked(score: Score, desk: _Desk) -> None:
    for row in () if score.marked is UNSET else score.marked:
        click.echo()
        sign, colour = ("right", "green") if row.right else ("wrong", "red")
        _say(f"{row.position + 1}  {desk.say(sign)}  {row.question}", fg=colour)
        if not row.right:
            _say(row.prompt)
            _say(f"{desk.say('Yours'):8}{row.answer or '-'}")
            _show_key(row, desk)
            _explain(row, desk)


def _show_outcome(outcome: Standing, desk: _Desk) -> None:
    if isinstance(outcome, Score):
        _show_marked(outcome, desk)
    click.echo()
    if not isinstance(outcome, Score):
        return
    say = desk.say
    told = {
        "share": f"{outcome.score:.0%}",
        "questions": desk.counted(outcome.questions),
        **_ends(outcome),
    }
    if outcome.passed is UNSET:
        part = (
            "{done} of {of} answered: so far {share} of {questions} "
            "(95% interval {low} to {high}). Part of a quiz has no verdict."
        )
        told |= {"done": str(outcome.answered), "of": str(outcome.of)}
        _say(say(part).format(**told), bold=True)
    else:
        passes = say("{share} passes").format(share=f"{outcome.pass_mark:.0%}")
        verdict = say("passed") if outcome.passed else passes
        score = "Score {share} of {questions} (95% interval {low} to {high}): {verdict}"
        _say(say(score).format(**told, verdict=verdict), bold=True)
    if outcome.choice_corrected is not None:
        luck = "Choice questions without luck, (R - W/(k-1))/N: {share} of {questions}"
        share, among = f"{outcome.choice_corrected:.0%}", outcome.choice_questions
        _say(say(luck).format(share=share, questions=among))
    row = say("{points} of {questions}   {low} to {high}")
    for topic, each in outcome.topics.items():
        of = {"points": f"{each.points:g}", "questions": each.questions}
        _say(f"{topic:20} {row.format(**of, **_ends(each))}", indent=2)
    if outcome.read_next:
        _say(say("Read next:"))
    for note in outcome.read_next:
        tell(f"  {note.command}   {note.title}")
    again = (
        "Mistakes come back from tomorrow: {review}. "
        "The same questions again: --seed {seed}"
    )
    review = typed("quiz", "review")
    _say(say(again).format(review=review, seed=outcome.seed), dim=True)


def _ends(share: Share | Score) -> dict[str, str]:
    """Return the ends of an interval, in words."""
    low, high = (f"{end:.0%}" for end in share.interval)
    return {"low": low, "high": high}


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
