"""``readerkit rebuild``: write one section of a mini anew, and have it graded."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readerkit.app.mini_names import SAYS, one_of
from readerkit.commands.options import (
    FiniteRange,
    json_option,
    say_whose,
    shipped_language_option,
)
from readerkit.errors import ReaderkitError, WrongUseError
from readerkit.model.language import Told, said
from readerkit.terminal.as_json import print_json
from readerkit.terminal.asking import ask, one_word
from readerkit.terminal.completing import names
from readerkit.terminal.folded import tell
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.app.rebuilding import Rebuilt, Section
    from readerkit.content.exercises import Exercise


_VERDICTS = {True: "yes", False: "NO", None: "?"}
OWN_CHECKS = (
    "it runs to its end",
    "it comes to its end",
    "it passes the mini's own tests",
    "it does what upstream does",
)
"""Of every exercise, beside those that it names."""


@click.command(short_help="One section of a mini, written anew and graded.")
@click.argument("mini", required=False, shell_complete=names("rebuilt"))
@click.argument("name", required=False, shell_complete=names("rebuilt"))
@click.option("--check", is_flag=True, help="Grade the copy as it is, no editor.")
@click.option("--file", "file", type=click.Path(path_type=Path), help="Grade this one.")
@click.option("--hint", is_flag=True, help="Say the next hint.")
@click.option("--again", is_flag=True, help="Begin with a new copy; keeps the old.")
@click.option("--solution", is_flag=True, help="Show the mini's own lines.")
@click.option(
    "--timeout",
    type=FiniteRange(1, 3600),
    default=15.0,
    show_default=True,
    help="Seconds that a call between ranks may wait; what hangs outside of one is "
    "ended after a multiple.",
)
@shipped_language_option(
    "What is said, titles, tasks and hints in another language: es; the rest is marked."
)
@json_option
def rebuild(
    mini: str | None,
    name: str | None,
    check: bool,
    file: Path | None,
    hint: bool,
    again: bool,
    solution: bool,
    timeout: float,
    lang: str,
    as_json: bool,
) -> None:
    """Take section NAME of MINI out of a copy, and write it anew in your editor.

    What you write is put into a copy of the mini, runs on two ranks, and is measured
    beside the mini's own lines, check by check. Then the mini's own tests run on that
    copy, and last comes the comparison with upstream. Only the text between the marks
    counts; what hangs is ended; a check that fails has a hint. Without NAME, or MINI
    too, lists the sections there are and how far you have come. Exit 0 where no check
    fails.

    \b
    Example:
        readerkit rebuild
        readerkit rebuild ddp overlap
        readerkit rebuild ddp overlap --hint
        readerkit rebuild ddp overlap --check
    """
    from readerkit.app import rebuilding
    from readerkit.app.rebuilding import Section, begin, find_exercise

    known = rebuilding.in_language(rebuilding.read_exercises(), lang)
    of = None if mini is None else one_of(list(SAYS), mini)
    if of is None or name is None:
        if check or hint or again or solution or file:
            raise click.UsageError("Missing argument 'NAME'.")
        shown = [each for each in known if of in (None, each.mini)]
        if not shown:
            find_exercise(known, of or "", "")
        say_whose("sections to rebuild")
        _list(shown, lang, as_json=as_json)
        return
    section = Section.of(find_exercise(known, of, name))
    if sum((check or file is not None, hint, solution)) > 1:
        raise click.UsageError("one of --check, --hint and --solution at a time")
    grades = check or file is not None
    if as_json and not grades:
        raise click.UsageError("--json grades or lists: add --check")
    if solution:
        _show_solution(section)
        return
    if hint:
        _say_hint(section.exercise, lang)
        return
    path = file or begin(section, anew=again)
    if grades:
        passed = _graded(
            section, path, timeout, lang, as_json=as_json, counts=file is None
        )
        raise click.exceptions.Exit(0 if passed else 1)
    _begin(section, path, timeout, lang)


def _list(exercises: Sequence[Exercise], lang: str, *, as_json: bool) -> None:
    from readerkit.app.interface_translation import say_in
    from readerkit.app.rebuilding import read_state

    say = say_in(lang)
    states = [read_state(each) for each in exercises]
    if as_json:
        print_json(
            [
                {"mini": each.mini, "name": each.name, "title": each.title}
                | {name: getattr(of, name) for name in of.__slots__}
                for each, of in zip(exercises, states, strict=True)
            ]
        )
        return
    width = max(len(f"{each.mini} {each.name}") for each in exercises)
    for each, of in zip(exercises, states, strict=True):
        name = f"{each.mini} {each.name}"
        tell(f"{name:{width}}  {each.title} [{said(_how_far(of), say)}]")
    first = next((e for e, of in zip(exercises, states, strict=True) if not of.solved),
                 exercises[0])  # fmt: skip
    tell(f"\n{say('Next')}: {typed('rebuild', first.mini, first.name)}")


def _how_far(of: Rebuilt) -> Told:
    if of.solved:
        seen = Told("rebuilt, after seeing the solution")
        return seen if of.saw_solution else Told("rebuilt")
    if of.tries:
        counts = {"passed": of.passed, "count": of.checks, "tries": of.tries}
        if of.tries == 1:
            return Told("{passed} of {count} checks, 1 try", **counts)
        return Told("{passed} of {count} checks, {tries} tries", **counts)
    return Told("not tried")


def _show_solution(section: Section) -> None:
    from readerkit.app.rebuilding import note_state

    note_state(section.exercise, saw_solution=True)
    at = section.exercise.at.file
    click.echo(f"{at}:{section.first}-{section.last}")
    click.echo("\n".join(section.solution))


def _say_hint(exercise: Exercise, lang: str) -> None:
    from readerkit.app.interface_translation import say_in
    from readerkit.app.rebuilding import note_state, read_state

    say = say_in(lang)

    taken = min(read_state(exercise).hints + 1, len(exercise.hints))
    note_state(exercise, hints=taken)
    for number, text in enumerate(exercise.hints[:taken], 1):
        tell(f"{say('hint {} of {}').format(number, len(exercise.hints))}: {text}")
    if taken == len(exercise.hints):
        last = say("That was the last; the lines are shown by")
        tell(f"\n{last} {_typed(exercise, '--solution')}")


def _begin(section: Section, path: Path, timeout: float, lang: str) -> None:
    from readerkit.app.interface_translation import say_in

    exercise, say = section.exercise, say_in(lang)
    tell(f"{exercise.mini} {exercise.name}: {exercise.title}\n\n{exercise.asks}\n")
    click.echo(f"{say('your copy')}: {path}")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        tell(f"{say('Write there, then')}: {_typed(exercise, '--check')}")
        return
    while True:
        _edit(path, exercise)
        if _graded(section, path, timeout, lang):
            return
        click.echo()
        answer = ask(
            say("e to edit again, h for a hint, q to leave it for now"),
            lambda typed: one_word(typed, ("", "e", "h", "q")),
            say("Expected e, h or q; Enter is e."),
        )
        if answer == "h":
            _say_hint(exercise, lang)
            click.pause(say("Any key goes on …"))
        if answer == "q":
            tell(f"{say('To go on')}: {_typed(exercise)}")
            raise click.exceptions.Exit(1)


def _edit(path: Path, exercise: Exercise) -> None:
    from readerkit.terminal.processes import lent_terminal

    try:
        with lent_terminal():
            click.edit(filename=str(path))
    except click.ClickException as error:
        raise ReaderkitError(
            f"{error.message}; set EDITOR to an editor that runs, or write in {path} "
            f"and then: {_typed(exercise, '--check')}"
        ) from None


def _graded(
    section: Section,
    path: Path,
    timeout: float,
    lang: str,
    *,
    as_json: bool = False,
    counts: bool = True,
) -> bool:
    """Grade a copy and tell each check; keep what came of it where it counts."""
    from readerkit.app.interface_translation import say_in
    from readerkit.app.rebuilding import note_state, read_state

    exercise, say = section.exercise, say_in(lang)
    try:
        text = section.composed(_read(path), path)
        results = _run(section, text, timeout)
    except ReaderkitError as error:
        if as_json or not sys.stdin.isatty():
            raise
        tell(f"readerkit: {error}", err=True)
        return False
    there_are = 2 + len(exercise.checks) + (exercise.beside is not None)
    passed = sum(result["passed"] is True for result in results)
    unmade = sum(result["passed"] is None for result in results)
    is_solved: bool = passed + unmade == there_are
    if counts:
        before = read_state(exercise)
        note_state(
            exercise,
            tries=before.tries + 1,
            passed=passed,
            checks=there_are,
            solved=before.solved or is_solved,
        )
    if as_json:
        print_json({"passed": is_solved, "of": there_are, "checks": results})
        return is_solved
    for result in results:
        verdict, says = say(_VERDICTS[result["passed"]]), say(result["says"])
        command = f": {result['command']}" if result["command"] else ""
        tell(f"{verdict:3}  {says}{command}")
        for line in result["told"].splitlines():
            tell(f"     {line}")
        if result["hint"]:
            tell(f"     {say('hint')}: {result['hint']}")
    if is_solved:
        why = "{count} checks pass; what ? stands before cannot be checked here"
        pass_ = Told(why if unmade else "all {count} checks pass", count=passed)
        told = Told(
            "Rebuilt: {checks}. The mini's own lines: {command}",
            checks=pass_,
            command=_typed(exercise, "--solution"),
        )
    else:
        told = Told(
            "{passed} of {count} checks; a hint: {command}",
            passed=passed,
            count=there_are,
            command=_typed(exercise, "--hint"),
        )
    tell(f"\n{said(told, say)}")
    return is_solved


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise WrongUseError(f"{path}: cannot be read: {why}") from None


def _run(section: Section, text: str, timeout: float) -> list[dict[str, Any]]:
    """Return the results of a process that runs the file, and ends with it."""
    from readerkit.system.temporary import temporary_folder
    from readerkit.terminal.run_mini import run_module

    exercise = section.exercise
    with temporary_folder("readerkit-rebuild-") as folder:
        file = Path(folder) / Path(exercise.at.file).name
        file.write_text(text, "utf-8")
        kept = Path(folder) / "results"
        arguments = [exercise.mini, exercise.name, str(file), str(kept)]
        limits = ["--timeout", f"{timeout:g}", "--limit", f"{20 * timeout + 60:g}"]
        try:
            run_module(
                "mini_impls.faults.grade_rebuilt",
                [*arguments, *limits],
                command=_typed(exercise, "--check"),
                ends_all=True,
            )
        except click.exceptions.Exit as ended:
            if ended.exit_code != 1:
                raise
        rows = kept.read_text("utf-8") if kept.exists() else ""
        results = [json.loads(line) for line in rows.splitlines()]
    for result in results:
        helps = result["passed"] is False and result["hint"]
        result["hint"] = exercise.hints[helps - 1] if helps else ""
    if not results:
        raise ReaderkitError(
            f"{exercise.key}: nothing was graded; what is above says why"
        )
    return results


def _typed(exercise: Exercise, *more: str) -> str:
    return typed("rebuild", exercise.mini, exercise.name, *more)
