"""``readerkit path``: the reading paths in the terminal, note by note."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import book_option, json_option, pager_option
from readerkit.terminal.as_json import print_json
from readerkit.terminal.completing import names
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.content.reading_order import Route


@click.command(short_help="The reading paths: what to read, and what comes next.")
@click.argument("name", required=False, shell_complete=names("paths"))
@click.argument("number", type=click.IntRange(1), required=False)
@pager_option
@json_option
@book_option
def path(
    name: str | None, number: int | None, pager: bool, as_json: bool, book: Path | None
) -> None:
    """Show the reading paths, the notes on path NAME, or note NUMBER of it.

    The same paths as on the site: in the order in which ideas need each other, from
    what went wrong, and by what they trade. A stop's own name is a path too.

    \b
    Example:
        readerkit path
        readerkit path failure
        readerkit path silent-hang 1
    """
    from readerkit.app.library import open_library
    from readerkit.app.read_paths import read_paths
    from readerkit.errors import ReaderkitError
    from readerkit.terminal.pager import show_paged
    from readerkit.wording.meant_name import choose

    library = open_library(book)
    paths = {each.id: each for each in read_paths(library)}
    if not paths:
        raise ReaderkitError(f"{library.root}: this book has no notes to lay a path by")
    if name is None:
        shown = [*paths.values()]
        if as_json:
            print_json([_plain(each) for each in shown])
        else:
            show_paged("\n".join(map(_line, shown)) + _how_to(shown[0]), pager=pager)
        return
    known = _with_stops(paths)
    chosen = known[choose("reading path", name, known)]
    if as_json:
        print_json(_plain(chosen))
    elif number is None:
        show_paged(_overview(library, chosen), pager=pager)
    else:
        show_paged(_note(library, chosen, number), pager=pager)


def _with_stops(paths: dict[str, Route]) -> dict[str, Route]:
    """Return paths and, as short paths, the stops of those that name them."""
    from readerkit.content.reading_order import Route

    stops = {
        stop.id: Route(stop.id, stop.title, (stop,))
        for path in paths.values()
        for stop in path.stops
    }
    return paths | stops | paths  # the paths themselves are named first


def _line(path: Route) -> str:
    stops, notes = counted(len(path.stops), "stop"), counted(len(path.notes), "note")
    said = f"{path.id:12}  {path.title}: {stops}, {notes}"
    width = shutil.get_terminal_size().columns
    return "\n".join(textwrap.wrap(said, width, subsequent_indent=" " * 14))


def _how_to(path: Route) -> str:
    whole, first = typed("path", path.id), typed("path", path.id, "1")
    return f"\nThe notes on one:\n  {whole}\nThe first of them:\n  {first}"


def _overview(library: Library, path: Route) -> str:
    """Return the stops of a path, and the number of each note."""
    width = max(shutil.get_terminal_size().columns, 20)
    rows, number = textwrap.wrap(f"{path.id}: {path.title}", width), 0
    for stop in path.stops:
        title = textwrap.wrap(stop.title, width)
        rows += ["", *(click.style(row, bold=True) for row in title)]
        rows += textwrap.wrap(" ".join(stop.about.split()), width)
        for note in stop.notes:
            number += 1
            said = library.book.annotations[note].title
            whole = f"{number:4}  {note}  {said}"
            if len(whole) <= width:
                rows.append(whole)
                continue
            more = textwrap.wrap(said, width - 6)
            rows += [f"{number:4}  {note}", *(f"      {row}" for row in more)]
    first = typed("path", path.id, "1")
    return "\n".join([*rows, "", f"Read the first: {first}"])


def _note(library: Library, path: Route, number: int) -> str:
    """Return a note of a path between where it stands and where to go."""
    from readerkit.content.resolved_notes import resolve_notes
    from readerkit.errors import WrongUseError
    from readerkit.terminal.note import note_page

    if number > len(path.notes):
        notes = counted(len(path.notes), "note")
        raise WrongUseError(
            f"path {path.id} has {notes}: got {number}, expected 1 to {len(path.notes)}"
        )
    stop, name = path.notes[number - 1]
    annotation = library.book.annotations[name]
    sources = library.sources(library.upstream(annotation.upstream))
    [note] = resolve_notes(library.book, sources, [annotation])
    rows = [f"{path.id}, note {number} of {len(path.notes)}: {stop.title}", ""]
    rows += [note_page(library, note, sources), ""]
    for word, there in (("previous", number - 1), ("next", number + 1)):
        if 1 <= there <= len(path.notes):
            to = library.book.annotations[path.notes[there - 1][1]]
            rows.append(f"{word:8}  {typed('path', path.id, str(there))}  {to.title}")
    return "\n".join(rows)


def _plain(path: Route) -> dict[str, object]:
    return {
        "id": path.id,
        "title": path.title,
        "stops": [
            {
                "id": stop.id,
                "title": stop.title,
                "about": " ".join(stop.about.split()),
                "notes": list(stop.notes),
            }
            for stop in path.stops
        ],
    }
