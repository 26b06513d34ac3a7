"""Reads the reading paths of a book, which the site and the terminal show."""

from __future__ import annotations

from pathlib import Path

from readerkit.app.folders import read_at_most
from readerkit.app.library import Library
from readerkit.content.reading_order import Route, routes, tour_route
from readerkit.content.reading_paths import PATHS, ReadingPaths, join_paths
from readerkit.content.resolved_notes import resolve_notes
from readerkit.content.translations import PATH_TRANSLATION
from readerkit.content.validation import read_document
from readerkit.model.language import SPANISH

FIRST_STOP = "tp-row-forward"
FIRST_QUESTION = "tp-bias-once"
"""Of one choice, and on the lines of the first stop."""
ROUTES = Path("site", "pages", "paths.yaml")


def read_routes(library: Library) -> ReadingPaths:
    """Return the reading paths of a book, all checked; none where it has none.

    Raises:
        ContentError: every fault of their files.
    """
    path = library.root / ROUTES
    if not path.exists():
        return ReadingPaths()
    document = read_document(read_at_most(path, library.root), ROUTES.as_posix(), PATHS)
    known = (library.book.annotations.keys(), library.book.concepts.keys())
    beside = path.with_suffix(f".{SPANISH}.yaml")
    if not beside.exists():
        return join_paths(document, *known)
    file = ROUTES.with_suffix(f".{SPANISH}.yaml").as_posix()
    spanish = read_document(read_at_most(beside, library.root), file, PATH_TRANSLATION)
    return join_paths(document, *known, spanish)


def read_paths(library: Library) -> list[Route]:
    """Return the paths of a book, as the site shows them.

    Raises:
        ContentError: a note that does not resolve, a fault of the paths' files.
    """
    book, notes = library.book, []
    for upstream in book.upstreams.values():
        if book.notes_on(upstream.name):
            with library.sources_to_list(upstream) as sources:
                notes += [n.annotation for n in resolve_notes(book, sources)]
    titles = {name: note.title for name, note in book.annotations.items()}
    tours = [tour_route(tour, titles) for tour in book.tours.values()]
    return [*routes(read_routes(library), book.concepts, notes), *tours]
