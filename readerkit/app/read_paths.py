"""Reads the reading paths of a book, which the site and the terminal show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from msgspec import structs

from readerkit.app.folders import read_at_most
from readerkit.app.interface_translation import say_in
from readerkit.app.library import Library
from readerkit.content.kind import Entry
from readerkit.content.paths_file import PATHS, ReadingPaths, join_paths
from readerkit.content.resolved_notes import resolve_notes
from readerkit.content.routes import Route, routes, tour_route
from readerkit.content.translations import PATH_TRANSLATION, Translation
from readerkit.content.validation import read_document
from readerkit.model.language import SPANISH

E = TypeVar("E", bound=Entry)

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


def read_paths(library: Library, language: str = "en") -> list[Route]:
    """Return the paths of a book, as the site shows them, in a language.

    What has no text in it is in English; but for a tour's own texts it is marked.

    Raises:
        ContentError: a note that does not resolve, a fault of the paths' files.
    """
    book, notes = library.book, []
    for upstream in book.upstreams.values():
        if book.notes_on(upstream.name):
            with library.sources_to_list(upstream) as sources:
                notes += [n.annotation for n in resolve_notes(book, sources)]
    paths, concepts, say = read_routes(library), book.concepts, say_in(language)
    titles = {name: note.title for name, note in book.annotations.items()}
    if language != "en":
        paths = _paths_in(language, paths)
        concepts = {
            name: _told(
                concept, book.translated(concept, language).texts, concept.TEXTS
            )
            for name, concept in concepts.items()
        }
        titles = {
            name: book.translated(note, language).texts.get("title")
            or f"[en] {note.title}"
            for name, note in book.annotations.items()
        }
    tours = [tour_route(book.tour_in(name, language), titles) for name in book.tours]
    ways = routes(paths, concepts, notes)
    return [*(replace(way, title=say(way.title)) for way in ways), *tours]


def _told(entry: E, said: Mapping[str, str], fields: Iterable[str]) -> E:
    """Return an entry with these of its texts in the other language."""
    mark = "" if said else "[en] "  # a title may be the same word
    own = {name: getattr(entry, name) for name in fields}
    return structs.replace(
        entry, **{name: said.get(name) or f"{mark}{own[name]}" for name in own}
    )


def _paths_in(language: str, paths: ReadingPaths) -> ReadingPaths:
    """Return the paths that people write in a language; Spanish is the one there is."""
    known, none = paths.spanish if language == SPANISH else {}, Translation()

    def said(name: str) -> Mapping[str, str]:
        return known.get(name, none).texts

    failures = (_told(each, said(each.id), each.texts) for each in paths.failures)
    pairs = (_told(each, said(each.id), each.texts) for each in paths.pairs)
    return structs.replace(paths, failures=(*failures,), pairs=(*pairs,))
