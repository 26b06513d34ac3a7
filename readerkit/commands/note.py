"""``readerkit note``: write a note on lines, with its anchor proposed and proved."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import book_option, into_option, written_topic_option
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.content.resolved_notes import Note, Sources
    from readerkit.errors import ReaderkitError
    from readerkit.model.anchor import Span
    from readerkit.terminal.note_draft import DraftEntry
    from readerkit.upstreams import Upstream

_LINES = re.compile(r"(?P<path>.+):(?P<first>[0-9]{1,18})(?:-(?P<last>[0-9]{1,18}))?")


@click.command(short_help="Write a note of your own on FILE:LINES.")
@click.argument("place", metavar="FILE:LINES")
@click.option(
    "--id",
    "note_id",
    help="The id of the new note; by default new-note, or my-note in your overlay.",
)
@click.option(
    "--kind",
    type=click.Choice(["citation", "note", "pitfall"]),
    help="A design decision, how to read the lines, or a trap: by default citation, or "
    "note where the book has no references to cite.",
)
@written_topic_option("The file it goes to: <topic>.yaml; by default my-notes.")
@into_option
@click.option(
    "--from",
    "given",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take the entry from a file, such as a draft that was kept; no form is shown.",
)
@click.option(
    "--print", "only_print", is_flag=True, help="Print the entry; write nothing."
)
@book_option
def note(
    place: str,
    note_id: str | None,
    kind: str | None,
    topic: str | None,
    into: str | None,
    given: Path | None,
    only_print: bool,
    book: Path | None,
) -> None:
    """Write a note on FILE:LINES: proposes the narrowest unique anchor, opens $EDITOR.

    FILE is a path inside an upstream (or a unique end of one), LINES is 12 or 12-20.

    \b
    Example:
        readerkit note megatron/core/tensor_parallel/layers.py:1289-1292
        readerkit note tensor_parallel/layers.py:1286-1294 --kind note

    An entry with faults is offered to be edited again; without a terminal it is kept,
    and the command that takes it up again is printed.
    """
    from readerkit.app.library import open_library
    from readerkit.app.new_note import make_form
    from readerkit.errors import AnchorError, GrammarError, WrongUseError
    from readerkit.terminal.note_draft import Draft

    if given and (note_id or kind or only_print):
        raise click.UsageError(
            "--from takes the entry as it stands: leave --id, --kind and --print out"
        )
    library = open_library(book)
    upstream, span = _find(place, library)
    target = _target(library, upstream, topic or "my-notes", into)

    def again(file: Path) -> str:
        options = {"--topic": topic, "--into": into, "--from": file}
        words = [str(w) for option in options.items() if option[1] for w in option]
        return typed("note", place, *words)

    if given:
        draft = Draft(given.absolute(), again(given.absolute()))
    else:
        note_id = _free_id(note_id, library, target)
        usual = kind or _usual_kind(library)
        try:
            entry, form = make_form(note_id, usual, library, upstream, span)
        except GrammarError:
            raise
        except AnchorError as error:  # lines that there are not, or without code
            raise WrongUseError(str(error)) from None
        if only_print:
            click.echo(entry, nl=False)
            return
        if target.is_relative_to(library.mine):  # before anyone types, not after
            open_library(book, whole=True, quiet=True)
        draft = Draft.of(form, again)

    written = draft.until_taken(
        lambda entry: _take(library, upstream, target, entry, book)
    )
    click.echo(f"wrote {target}")
    _show(upstream, *written)


def _usual_kind(library: Library) -> str:
    """Return the kind of most new notes: a citation wants a reference."""
    return "citation" if library.book.references else "note"


def _take(
    library: Library,
    upstream: Upstream,
    target: Path,
    entry: DraftEntry,
    book: Path | None,
) -> tuple[Library, Sources, list[Note]]:
    """Add an entry to the book; what is wrong in it is told at its place in the draft.

    Raises:
        ReaderkitError: the book does not hold with it; nothing is changed then.
    """
    from readerkit.app.library import writing
    from readerkit.app.new_note import add_note
    from readerkit.errors import ReaderkitError

    with writing():
        try:
            return add_note(library, upstream, target, entry.text, book)
        except ReaderkitError as error:
            raise ReaderkitError(_in_draft(error, target, entry)) from None


def _show(
    upstream: Upstream, library: Library, sources: Sources, notes: list[Note]
) -> None:
    """Show new notes as their readers will see them."""
    from readerkit.terminal.note import show_note

    if sys.stdout.isatty():
        click.echo()
    for each in notes:
        read = replace(each, state="reviewed") if upstream.is_locked else each
        show_note(library, read, sources)


def _free_id(given: str | None, library: Library, target: Path) -> str:
    """Return the id that was asked for, or the next free one."""
    from readerkit.app.new_note import free_id
    from readerkit.errors import WrongUseError
    from readerkit.model.base import ID_PATTERN

    if given is None:
        return free_id(library, target)
    if not re.fullmatch(ID_PATTERN, given):
        raise click.UsageError(
            f"--id: got '{given}', expected small letters, digits and hyphens, "
            "such as tp-my-close"
        )
    if given in library.book.annotations:
        place = library.book.annotations[given].place
        raise WrongUseError(
            f"the id '{given}' is taken ({place.file}:{place.line}): choose another"
        )
    return given


def _find(place: str, library: Library) -> tuple[Upstream, Span]:
    """Return the upstream and the lines that ``FILE:LINES`` names."""
    from readerkit.app.new_note import find_lines

    match = _LINES.fullmatch(place)
    if match is None:
        raise click.UsageError(
            f"FILE:LINES: got '{place}', expected path:12 or path:12-20"
        )
    path, first = _in_repository(match["path"], library), int(match["first"])
    return find_lines(path, first, int(match["last"] or first), library)


def _in_repository(path: str, library: Library) -> str:
    """Return a path from the top of the repository that a book stands in.

    What a shell completes or an editor copies is a path from here, or from the root.
    """
    from readerkit.upstreams.book_repository import top_of

    living = [each for each in library.book.upstreams.values() if each.is_living]
    if any(path in library.sources(each).paths for each in living):
        return path
    top, real = top_of(library.root), Path(os.path.realpath(path))  # of a loop, too
    if living and real.is_file() and real.is_relative_to(top):
        return real.relative_to(top).as_posix()
    return path


def _target(library: Library, upstream: Upstream, topic: str, into: str | None) -> Path:
    from readerkit.app.new_note import note_file, note_root
    from readerkit.errors import WrongUseError

    if not re.fullmatch(r"[a-z][a-z0-9_-]*", topic):
        raise WrongUseError(f"--topic: got '{topic}', expected a name such as my-notes")
    return note_file(note_root(library, into), upstream, topic)


def _in_draft(error: ReaderkitError, target: Path, entry: DraftEntry) -> str:
    """Return the message of ``error`` with its places moved to the draft."""
    from readerkit.app.new_note import text_before
    from readerkit.errors import ContentError

    if not isinstance(error, ContentError):
        return str(error)
    before = text_before(target).count("\n")
    shift = entry.first_line - 1 - before
    return "\n".join(
        str(fault._replace(file=str(entry.file), line=fault.line + shift))
        if str(target).endswith(fault.file) and fault.line > before
        else str(fault)
        for fault in error.faults
    )
