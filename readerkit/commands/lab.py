"""``readerkit lab``: a lab's page, its measurement, and what checks the hand-in."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import (
    book_option,
    folder_option,
    is_typed,
    json_option,
    say_whose,
)
from readerkit.errors import ContentError, ReaderkitError, WrongUseError
from readerkit.terminal.as_json import print_json
from readerkit.terminal.completing import names
from readerkit.terminal.folded import tell
from readerkit.terminal.run_mini import Forwarding
from readerkit.wording.next_command import LAB_OF_BOOK, typed

if TYPE_CHECKING:
    from readerkit.labs.lab import ChecklistItem, Lab

TOPIC = "lab-03"


@click.command(
    cls=Forwarding,
    forwards=("--world", "--backend", "--rounds", "--timeout", "--oversubscribe"),
    short_help="The labs: pages, measurements, checks.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument(
    "number", required=False, metavar="[NUMBER]", shell_complete=names("labs")
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--run", "action", flag_value="run", help="Measure, and write the result."
)
@click.option("--check", "action", flag_value="check", help="Check what is handed in.")
@click.option("--task", "action", flag_value="task", help="Print the cloud task.")
@click.option("--solution", "action", flag_value="solution", help="After an attempt.")
@folder_option
@json_option
@book_option
def lab(
    number: str | None,
    options: tuple[str, ...],
    action: str | None,
    folder: Path,
    as_json: bool,
    book: Path | None,
) -> None:
    """Show lab NUMBER, 00 to 04: the problem, and what to hand in.

    With --run, OPTIONS go to the measurement: --world N, --backend gloo|nccl,
    --rounds N.

    \b
    Example:
        readerkit lab 01
        readerkit lab 01 --run --world 2
        readerkit lab 01 --check
    """
    from readerkit.labs.lab import LABS

    context = click.get_current_context()
    if is_typed(context, "book") and f"--{action}" not in LAB_OF_BOOK:
        raise click.UsageError(
            f"labs are those that ship: --book goes with {' or '.join(LAB_OF_BOOK)}"
        )
    if options and action != "run":
        raise click.UsageError(f"unexpected argument: {options[0]}")
    if action and number is None:
        raise click.UsageError(f"--{action} is for one lab: name its NUMBER")
    if as_json and number is not None and action != "check":
        raise click.UsageError("--json lists or checks: add --check")
    if number is None:
        if as_json:
            print_json(
                [{"lab": each.id, "title": each.title} for each in LABS.values()]
            )
            return
        say_whose("labs")
        for each in LABS.values():
            tell(f"{each.id}  {each.title}")
        return
    chosen = LABS.get(number.zfill(2))
    if chosen is None:
        known = ", ".join(LABS)
        raise WrongUseError(f"unknown lab: got '{number}', expected one of {known}")
    if action == "run":
        measure(chosen, folder, options)
    elif action == "check":
        from readerkit.app.check_lab import check_lab
        from readerkit.app.library import open_library

        items = check_lab(chosen, folder, open_library(book))
        _show(chosen, items, as_json=as_json)
        if any(item.state == "not met" for item in items):
            raise click.exceptions.Exit(1)
    elif action == "task":
        click.echo(_page(f"{chosen.id}.task.yaml", chosen), nl=False)
    else:
        if action == "solution":
            _demand_attempt(chosen, folder, book)
        suffix = ".solution.md" if action == "solution" else ".md"
        _show_page(_page(chosen.id + suffix, chosen))


def measure(chosen: Lab, folder: Path, options: tuple[str, ...]) -> None:
    """Run a lab's measurement as a process of its own, then draw what it wrote.

    Raises:
        ReaderkitError: a lab with nothing to run, or torch is not installed.
    """
    from readerkit.app.check_lab import file_name
    from readerkit.terminal.run_mini import run_module

    if not chosen.module:
        raise WrongUseError(
            f"lab {chosen.id} has nothing to run: {typed('lab', chosen.id)} shows it"
        )
    asked = _asked(options)
    path = folder / file_name(chosen, on_gpus=asked.backend == "nccl")
    # What cannot run, the measurement says before anybody has guessed.
    guesses = _ask_for_guesses() if chosen.id == "01" and asked.world > 0 else ()
    arguments = [*options, "--out", str(path)]
    run_module(chosen.module, arguments, command=typed("lab", chosen.id, "--run"))
    if path.is_file():
        if any(guesses):
            from readerkit.app.own_figures import keep_guesses

            keep_guesses(path, guesses)
        if chosen.id == "01":
            _show_steps(path, guesses)
        if chosen.id == "02":
            _show_curve(path)
        check_it = typed("lab", chosen.id, "--check")
        click.echo(f"{path}: check it with {check_it}")


def _asked(options: Sequence[str]) -> argparse.Namespace:
    """Return what ranks talk by, and how many, as the measurement's own parser would.

    There are none where it will complain of the options.
    """
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--world", type=int, default=1)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--timeout", type=float)
    parser.add_argument("--oversubscribe", action="store_true")
    with suppress(argparse.ArgumentError):
        asked, unknown = parser.parse_known_args(options)
        if not unknown:
            return asked
    return argparse.Namespace(backend="gloo", world=0)


def _ask_for_guesses() -> list[float | None]:
    """Return the guesses of a person at a terminal."""
    from readerkit.labs.predictions import QUESTIONS
    from readerkit.terminal.asking import ask

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return []
    click.echo("How many times as much? A number, or Enter for no guess.")
    return [
        ask(f"  {question}", _guess, "  Expected a number, or Enter for no guess.")
        or None
        for question in QUESTIONS
    ]


def _guess(typed: str) -> float:
    times = float(typed.replace(",", ".") or 0)
    if not 0 <= times < math.inf:
        raise ValueError(f"got {typed}")
    return times


def _show_steps(path: Path, guesses: Sequence[float | None]) -> None:
    """Print what was asked for, and draw all of it beside the result."""
    from readerkit.labs.predictions import predictions
    from readerkit.labs.results import DdpResult, read_result
    from readerkit.render.lab_figures import Bars, bar_plot, print_predictions
    from readerkit.render.note_view import console
    from readerkit.upstreams.store import write_atomically

    result = read_result(DdpResult, "01", path)
    print_predictions(predictions(result, guesses), console())
    rates: dict[int, list[float]] = {}
    for step in sorted(result.steps, key=lambda step: step.world_size):
        rates.setdefault(step.hidden_size, []).append(step.sequences / step.step_s)
    rows = [
        Bars(f"width {width}", tuple(values)) for width, values in sorted(rates.items())
    ]
    where = result.environment
    svg = bar_plot(
        "Sequences a second",
        f"{where.backend} on {where.devices} x {where.device}, {result.made}",
        ["1 rank", f"{result.world_size} ranks"],
        rows,
    )
    write_atomically(path.with_suffix(".svg"), svg.encode())


def _show_curve(path: Path) -> None:
    """Print what a token takes on each number of ranks."""
    from readerkit.labs.generation_curve import curves, tell_crowding
    from readerkit.labs.results import GenerationResult, read_result
    from readerkit.render.lab_figures import print_curves
    from readerkit.render.note_view import console

    result = read_result(GenerationResult, "02", path)
    print_curves(curves(result), console())
    if crowding := tell_crowding(result):
        tell(f"{crowding}.")


def _demand_attempt(chosen: Lab, folder: Path, book: Path | None) -> None:
    """Raise where nothing of this lab was done; what was done need not be right."""
    from readerkit.app.check_lab import check_lab
    from readerkit.app.library import open_library
    from readerkit.labs.reading import TOPIC

    try:
        items = check_lab(chosen, folder, open_library(book))
    except ContentError as error:
        raise ReaderkitError(
            f"the solution of lab {chosen.id} shows after an attempt that can be read:"
            f"\n{error}"
        ) from None
    if chosen.id == "03":
        attempted = any(item.attempted for item in items)
        where = f"a note of your own with --topic {TOPIC} --into mine"
    else:
        attempted = items[0].attempted
        where = str(folder / chosen.handed_in)
    if not attempted:
        raise ReaderkitError(
            f"the solution of lab {chosen.id} shows after an attempt: got none, "
            f"expected {where}"
        )


def _page(name: str, chosen: Lab) -> str:
    from readerkit.app.folders import shipped_book

    path = shipped_book() / "site" / "pages" / "labs" / name
    if not path.is_file():
        raise WrongUseError(f"lab {chosen.id} has no {name.partition('.')[2]}")
    return path.read_text()


def _show_page(markdown: str) -> None:
    from readerkit.render.checklist import print_page
    from readerkit.render.note_view import console

    print_page(markdown, console())


def _show(chosen: Lab, items: list[ChecklistItem], *, as_json: bool) -> None:
    if as_json:
        rows = [asdict(item) for item in items]
        print_json({"lab": chosen.id, "items": rows})
        return
    from readerkit.render.checklist import print_checklist
    from readerkit.render.note_view import console

    print_checklist(items, console())
    missing = sum(item.state == "not met" for item in items)
    verb = "is" if missing == 1 else "are"
    every = "the one item is" if len(items) == 1 else f"all {len(items)} are"
    tell(
        f"lab {chosen.id}: {missing} of {len(items)} {verb} missing"
        if missing
        else f"lab {chosen.id}: {every} met"
    )
