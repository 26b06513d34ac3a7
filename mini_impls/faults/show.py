"""What `break` prints: the lines, the question, what was measured, and the guards."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console

from mini_impls.failures import RankFailedError
from mini_impls.faults.fault import Fault, Guard, Mutant
from mini_impls.faults.symptoms import Outcome, refutation, show_number
from readerkit.anchors import SourceFile, Span
from readerkit.app.library import Library
from readerkit.content.book import MINIS
from readerkit.errors import ReaderkitError
from readerkit.model.language import Say, english
from readerkit.render.note_view import console, on_page
from readerkit.render.terminal_code import code_lines
from readerkit.terminal.folded import tell
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

MAX_GUARD_LINES = 12


@dataclass(frozen=True, slots=True)
class GuardLines:
    """A guard with its lines."""

    guard: Guard
    span: Span
    source: SourceFile
    permalink: str


@dataclass(frozen=True, slots=True)
class Result:
    """Everything one `break` found."""

    mutant: Mutant
    right: Outcome
    wrong: Outcome
    shown: list[int]
    """Which of the fault's choices the runs show, from 0."""
    prediction: int | None
    """Which choice the reader took, from 0."""


def resolve_guards(
    library: Library, fault: Fault
) -> tuple[list[GuardLines], list[str]]:
    """Return the upstream lines, and why some cannot be shown here."""
    found, missing = [], []
    for guard in fault.guards:
        upstream = library.upstream(guard.upstream)
        try:
            sources = library.sources(upstream)
            span, source = sources.resolve(guard.at), sources.file(guard.at.file)
        except ReaderkitError as error:
            missing.append(f"{guard.upstream} {guard.at.symbol}: {error}")
            continue
        found.append(GuardLines(guard, span, source, upstream.permalink(span)))
    return found, missing


# --- before the runs ---


def list_faults(faults: Sequence[Fault]) -> str:
    """Return one line a fault."""
    width = max(len(fault.mini) + 1 + len(fault.name) for fault in faults)
    rows = (
        f"{f'{fault.mini} {fault.name}':{width}}  {fault.title}" for fault in faults
    )
    return "\n".join(rows)


def faults_to_json(faults: Sequence[Fault]) -> str:
    """Return the same as JSON."""
    rows = [
        {
            "mini": fault.mini,
            "fault": fault.name,
            "title": fault.title,
            "made_from": fault.made_from(),
        }
        for fault in faults
    ]
    return json.dumps(rows, indent=1)


def show_question(mutant: Mutant, say: Say = english) -> None:
    """Print the lines, right and wrong, and what may come of it."""
    fault = mutant.fault
    tell(click.style(f"{fault.mini} {fault.name}: {fault.title}", bold=True))
    tell(click.style(f"{mutant.span}  {fault.at.symbol}", dim=True))
    click.echo()
    for line in mutant.diff():
        tell(click.style(line.rstrip(), fg={"-": "green", "+": "red"}.get(line[:1])))
    tell("\n" + say("What will happen?"))
    for number, choice in enumerate(fault.choices, 1):
        tell(f"  {number}  {choice.text}")


# --- after them ---


def show_result(result: Result, library: Library, say: Say = english) -> None:
    """Print what was measured, what it means, and which lines prevent it."""
    fault = result.mutant.fault
    tell(f"\n{measured(result, say)}\n")
    for index in result.shown:
        answer = {"number": index + 1, "text": fault.choices[index].text}
        shown = say("Shown: {number}  {text}").format(**answer)
        tell(click.style(shown, bold=True))
    screen = console()
    width = min(screen.width, 88)
    if result.prediction is not None:
        is_right = result.prediction in result.shown
        verdict = (
            say("You said {number}: right.")
            if is_right
            else say("You said {number}: wrong.")
        )
        colour = "green" if is_right else "red"
        click.secho(verdict.format(number=result.prediction + 1), fg=colour)
        if not is_right:
            refuted = say("Not so: {why}.").format(why=why_not(result, say))
            click.echo(click.wrap_text(refuted, width))
    why = say("Why: {text}").format(text=fault.why)
    click.echo(click.wrap_text(why, width))
    tell("\n" + click.style(say("The lines that guard against it"), bold=True))
    mini = result.mutant
    _show_lines(f"{MINIS}  {fault.at.symbol}", mini.right, mini.span, screen, say)
    guards, missing = resolve_guards(library, fault)
    for lines in guards:
        guard = lines.guard
        heading = f"{guard.upstream}  {guard.at.symbol}"
        _show_lines(heading, lines.source, lines.span, screen, say)
        if guard.note:
            tell(click.style(f"    {typed('annotate', guard.note)}", fg="cyan"))
    for line in missing:
        tell("  " + say("not at hand: {line}").format(line=line))


def why_not(result: Result, say: Say = english) -> str | None:
    """Return what refutes the reader's prediction; None where there is nothing to."""
    if result.prediction is None or result.prediction in result.shown:
        return None
    symptom = result.mutant.fault.choices[result.prediction].symptom
    return refutation(result.right, result.wrong, symptom, say)


def _show_lines(
    heading: str, source: SourceFile, span: Span, screen: Console, say: Say
) -> None:
    tell(click.style(f"{heading}  {span}", dim=True))
    last = min(span.last, span.first + MAX_GUARD_LINES - 1)
    shown = Span(span.path, span.first, last)
    width = screen.width if screen.is_terminal else None
    click.echo(on_page(screen, code_lines(source, shown, width)), nl=False)
    if last < span.last:
        more = counted(span.last - last, say("more line"), say("more lines"))
        tell(click.style(f"    … {more}", dim=True))


def measured(result: Result, say: Say = english) -> str:
    """Return a table of the right run, rank by rank; the other one where it differs."""
    right, wrong = result.right, result.wrong
    if wrong.failure is not None:
        how = how_it_failed(wrong.failure, say)
        return say("With the fault the run did not come to its end:") + f"\n{how}"
    rows = [(say("measured"), [f"rank {i}" for i in range(len(right.ranks))])]
    for name in right.ranks[0]:
        rows.append((say(name), _numbers(right, name)))
        if right.column(name) != wrong.column(name):
            rows.append((f"  {say('with the fault')}", _numbers(wrong, name)))
    first = max(len(label) for label, _ in rows)
    wide = max(len(cell) for _, cells in rows for cell in cells)
    return "\n".join(
        "  ".join([f"{label:{first}}", *(f"{cell:>{wide}}" for cell in cells)])
        for label, cells in rows
    )


def _numbers(run: Outcome, name: str) -> list[str]:
    return [show_number(value, name) for value in run.column(name)]


def how_it_failed(failure: RankFailedError, say: Say = english) -> str:
    """Return who failed first, who was missing, and where the fault's own code stood.

    The launcher's message goes on with a traceback of which only that line matters.
    """
    lines = [f"  {line}" for line in failure.said.splitlines()]
    frames = re.findall(
        r'File "[^"]*mini-impls-fault[^"]*", line (\d+), in (\S+)\n\s+(.*)',
        failure.traceback,
    )
    if frames:
        number, function, code = frames[-1]
        stood = say("it stood in {function}, line {line} of the faulty copy: {code}")
        lines.append("  " + stood.format(function=function, line=number, code=code))
    if failure.hung and not failure.missing:
        lines.append("  " + say("nobody has left: the ranks wait for one another"))
    return "\n".join(lines)


def to_json(result: Result, library: Library, say: Say = english) -> str:
    """Return everything as JSON, in ASCII."""
    mutant, fault = result.mutant, result.mutant.fault
    span = mutant.span
    guards, missing = resolve_guards(library, fault)
    found: dict[str, Any] = {
        "mini": fault.mini,
        "fault": fault.name,
        "title": fault.title,
        "path": span.path,
        "first": span.first,
        "last": span.last,
        "right": mutant.lines()[span.first - 1 : span.last],
        "wrong": list(mutant.wrong_lines),
        "choices": [choice.text for choice in fault.choices],
        "shown": [index + 1 for index in result.shown],
        "symptoms": [fault.choices[index].symptom for index in result.shown],
        "prediction": None if result.prediction is None else result.prediction + 1,
        "why_not": why_not(result, say),
        "measured_right": [dict(rank) for rank in result.right.ranks],
        "measured_wrong": [dict(rank) for rank in result.wrong.ranks],
        "failure": (
            how_it_failed(result.wrong.failure) if result.wrong.failure else None
        ),
        "why": fault.why,
        "guards": [
            {
                "upstream": lines.guard.upstream,
                "path": lines.span.path,
                "first": lines.span.first,
                "last": lines.span.last,
                "permalink": lines.permalink,
                "annotation": lines.guard.note,
            }
            for lines in guards
        ],
        "guards_not_at_hand": missing,
    }
    return json.dumps(found, indent=1)
