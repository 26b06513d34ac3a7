"""Reads the reading paths of a book, which the site and the terminal show."""

from __future__ import annotations

from pathlib import Path

from readerkit.commands.library import Library
from readerkit.routes import Routes, parse_routes
from readerkit.schema import read_document
from readerkit.yaml_tree import parse_yaml

ROUTES = Path("site", "pages", "paths.yaml")


def read_routes(library: Library) -> Routes:
    """Return the reading paths of a book, all checked; none where it has none.

    Raises:
        ContentError: every fault of their files.
    """
    path = library.root / ROUTES
    if not path.exists():
        return Routes()
    document = parse_yaml(path.read_bytes(), ROUTES.as_posix())
    beside = path.with_suffix(".es.yaml")
    if not beside.exists():
        return parse_routes(document, library.book)
    file = ROUTES.with_suffix(".es.yaml").as_posix()
    spanish = read_document(beside.read_bytes(), file, "route-translation")
    return parse_routes(document, library.book, spanish)
