"""``readerkit path``: the reading paths in the terminal, note by note."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import (
    WholeRange,
    book_option,
    json_option,
    lang_option,
    pager_option,
)
from readerkit.terminal.as_json import print_json
from readerkit.terminal.completing import names

if TYPE_CHECKING:
    from readerkit.content.routes import Route


@click.command(short_help="The reading paths: what to read, and what comes next.")
@click.argument("name", required=False, shell_complete=names("paths"))
@click.argument("number", type=WholeRange(1), required=False)
@lang_option
@pager_option
@json_option
@book_option
def path(
    name: str | None,
    number: int | None,
    lang: str | None,
    pager: bool,
    as_json: bool,
    book: Path | None,
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
    from readerkit.app.interface_translation import known_language
    from readerkit.app.library import open_library
    from readerkit.app.read_paths import read_paths
    from readerkit.errors import ReaderkitError
    from readerkit.terminal.pager import show_paged
    from readerkit.terminal.path import PathPages
    from readerkit.wording.meant_name import choose

    library = open_library(book)
    language = known_language(lang, library)
    paths = {each.id: each for each in read_paths(library, language)}
    if not paths:
        raise ReaderkitError(f"{library.root}: this book has no notes to lay a path by")
    shown = [*paths.values()]
    if name is None:
        chosen = None
    else:
        known = _with_stops(paths)
        chosen = known[choose("reading path", name, known)]
    pages = PathPages(library, language)
    if as_json:
        print_json(_plain(chosen) if chosen else [_plain(each) for each in shown])
        return
    if chosen is None:
        text = pages.listed(shown)
    elif number is None:
        text = pages.overview(chosen)
    else:
        text = pages.note(chosen, number)
    show_paged(text, pager=pager, language=language)


def _with_stops(paths: dict[str, Route]) -> dict[str, Route]:
    """Return paths and, as short paths, the stops of those that name them."""
    from readerkit.content.routes import Route

    stops = {
        stop.id: Route(stop.id, stop.title, (stop,))
        for path in paths.values()
        for stop in path.stops
    }
    return paths | stops | paths  # the paths themselves are named first


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
