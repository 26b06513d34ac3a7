"""``readerkit progress``: the definition of done, each line with its evidence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import (
    WholeRange,
    book_option,
    folder_option,
    json_option,
)
from readerkit.errors import ReaderkitError, WrongUseError
from readerkit.labs import PHASE
from readerkit.terminal.as_json import print_json
from readerkit.terminal.completing import names
from readerkit.terminal.folded import tell
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.labs.lab import ChecklistItem
    from readerkit.labs.progress import Line


@click.command(short_help="The definition of done, each line with its evidence.")
@click.argument("phase", type=WholeRange(0, 999))
@folder_option
@click.option(
    "--waive",
    metavar="LINE",
    shell_complete=names("progress-lines"),
    help="Do without a line, such as tp-curve.",
)
@click.option("--reason", help="Why; it stands in the table.")
@click.option(
    "--unwaive",
    metavar="LINE",
    shell_complete=names("progress-lines"),
    help="Take that back.",
)
@json_option
@book_option
def progress(
    phase: int,
    folder: Path,
    waive: str | None,
    reason: str | None,
    unwaive: str | None,
    as_json: bool,
    book: Path | None,
) -> None:
    """Show what PHASE asks for, met or not; exit 0 where all is met or waived.

    Everything is looked at anew each time: hand-ins, the ledger, the history of the
    quiz, the diagram against the source. Of another phase than 35 it is the quiz.

    \b
    Example:
        readerkit progress 35
        readerkit progress 35 --waive tp-curve --reason "no rented GPU"
    """
    if (waive is None) != (reason is None) or (
        reason is not None and not reason.strip()
    ):
        raise click.UsageError("--waive LINE and --reason TEXT belong together")
    get_lines, title = _lines(phase, folder, book)
    waived = _read_waived(phase)
    known = [line.name for line in get_lines({})]
    for name in filter(None, (waive, unwaive)):
        if name not in known:
            raise WrongUseError(
                f"unknown line: got '{name}', expected one of {', '.join(known)}"
            )
    if waive is not None and reason is not None:
        waived[waive] = " ".join(reason.split())
    if unwaive is not None:
        waived.pop(unwaive, None)
    if waive or unwaive:
        _write_waived(phase, waived)
    lines = get_lines(waived)
    _show(lines, phase, title, as_json=as_json)
    if any(line.item.state == "not met" for line in lines):
        raise click.exceptions.Exit(1)


def _lines(
    phase: int, folder: Path, book: Path | None
) -> tuple[Callable[[Mapping[str, str]], list[Line]], str]:
    """Return what gives the lines of a phase with those that are waived; its title."""
    from readerkit.app import progress_findings as findings
    from readerkit.labs import progress as asked

    if phase == PHASE:
        from readerkit.app.library import open_library

        library = open_library(book)
        found = findings.find_progress(folder, library, _diagram(library))
        title = f"Phase {PHASE}, distributed training"
        return lambda waived: asked.get_lines(found, waived), title
    from readerkit.app.quiz_banks import QuizBanks

    bank = QuizBanks.at(book).bank(phase)
    exam, mastery = findings.find_answers(bank)
    mark = bank.rules.pass_mark
    return (
        lambda waived: asked.get_quiz_lines(exam, mastery, mark, phase, waived),
        bank.rules.title,
    )


def _diagram(library: Library) -> ChecklistItem:
    """Return whether each claim of the block's diagram holds in the pinned source."""
    from readerkit.app.read_writing import read_writing
    from readerkit.labs.lab import ChecklistItem
    from readerkit.site.build import BuildCache, open_sources

    what = "the tensor-parallel block's diagram, checked against the source"
    try:
        sources = open_sources(library, BuildCache())
        diagrams = read_writing(library, sources).diagrams
    except ReaderkitError as error:
        return ChecklistItem.of(what, False, str(error).splitlines()[0])
    held = "tp-block" in diagrams
    where = "site/pages/diagrams/tp-block.mmd"
    return ChecklistItem.of(
        what, held, f"{where}, every claim holds" if held else "not drawn"
    )


def _waived_file(phase: int) -> Path:
    from readerkit.app.folders import data_folder

    return data_folder() / f"progress-{phase}.json"


def _read_waived(phase: int) -> dict[str, str]:
    path = _waived_file(phase)
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text())
        return {str(name): str(reason) for name, reason in value["waived"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        waive = typed("progress", str(phase), "--waive")
        raise ReaderkitError(
            f"{path}: got something else than waived lines, expected what {waive} "
            "writes; move it away and waive again"
        ) from None


def _write_waived(phase: int, waived: dict[str, str]) -> None:
    from readerkit.upstreams.store import write_atomically

    text = json.dumps({"waived": waived}, indent=1, ensure_ascii=False) + "\n"
    write_atomically(_waived_file(phase), text.encode(), private=True)


def _show(lines: list[Line], phase: int, title: str, *, as_json: bool) -> None:
    states = Counter(line.item.state for line in lines)
    if as_json:
        rows = [
            {"line": line.name, "group": line.group, **asdict(line.item)}
            for line in lines
        ]
        sections = {"rebuilt": _rebuilt()} if phase == PHASE else {}
        print_json({"phase": phase, "lines": rows, **states, **sections})
        return
    from readerkit.labs.progress import DONE, GROUPS
    from readerkit.render.checklist import print_checklist
    from readerkit.render.note_view import console

    tell(
        f"{title}: {states['met']} of {len(lines)} lines "
        f"met, {states['waived']} waived, {states['not met']} open."
    )
    if not any(line.item.state == "met" for line in lines if line.group != DONE):
        is_measured = any(
            line.name == "ddp" and line.item.state == "met" for line in lines
        )
        has_labs = phase == PHASE and not is_measured
        measure = f", or {typed('lab', '01', '--run')}" if has_labs else ""
        first = typed("quiz", str(phase)) + measure
        tell(
            "Each line is met by evidence that is looked at now: answers, results.\n"
            f"A first step: {first}"
        )
    for group, says in GROUPS.items():
        mine = [line for line in lines if line.group == group]
        if not mine:
            continue
        tell(f"\n{group}: {says}")
        names = [line.name for line in mine]
        items = (line.item for line in mine)
        print_checklist(items, console(), names, open_mark=("open", "dim"))
    if phase == PHASE:
        of = _rebuilt()
        tell(
            f"\nRebuilt: {of['solved']} of {of['sections']} sections of minis, "
            f"{of['tried']} tried; {typed('rebuild')} lists them."
        )


def _rebuilt() -> dict[str, int]:
    """Return how many sections of minis there are, were tried, and are written anew."""
    from readerkit.app.rebuilding import read_exercises, read_state

    states = [read_state(each) for each in read_exercises()]
    return {
        "sections": len(states),
        "tried": sum(state.tries > 0 for state in states),
        "solved": sum(state.solved for state in states),
    }
