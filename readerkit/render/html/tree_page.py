"""The page that lists every file of an upstream, folder by folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from readerkit.links import File
from readerkit.render.html import addresses
from readerkit.render.html.escape import shown
from readerkit.render.html.file_page import Rights, rights
from readerkit.render.html.shelf import Shelf


@dataclass(frozen=True, slots=True)
class Leaf:
    """A file in the list."""

    name: Markup
    page: str
    notes: int


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that holds files; folders that hold only folders are joined."""

    id: str
    path: Markup
    files: tuple[Leaf, ...]
    notes: int


@dataclass(frozen=True, slots=True)
class TreePage:
    """Every file of an upstream."""

    address: str
    title: Markup
    upstream: str
    folders: tuple[Folder, ...]
    count: int
    annotated: tuple[Leaf, ...]
    rights: Rights


def tree_page(shelf: Shelf, upstream: str) -> TreePage:
    """Return the page of an upstream's files."""
    paths = sorted(path for name, path in shelf.sheets if name == upstream)
    counted = {path: len(shelf.notes_in((upstream, path))) for path in paths}
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        by_folder.setdefault(path.rpartition("/")[0], []).append(path)
    return TreePage(
        address=addresses.tree_page(upstream),
        title=shown(shelf.book.upstreams[upstream].title),
        upstream=upstream,
        folders=tuple(
            Folder(
                folder,
                shown(folder),
                tuple(_leaf((upstream, path), counted[path]) for path in inner),
                sum(counted[path] for path in inner),
            )
            for folder, inner in sorted(by_folder.items())
        ),
        count=len(paths),
        annotated=tuple(
            Leaf(shown(path), addresses.source_page(upstream, path), counted[path])
            for path in paths
            if counted[path]
        ),
        rights=rights(shelf, shelf.book.upstreams[upstream], ""),
    )


def _leaf(file: File, notes: int) -> Leaf:
    return Leaf(shown(file[1].rpartition("/")[2]), addresses.source_page(*file), notes)


def upstreams_shown(shelf: Shelf) -> Iterable[str]:
    """Return the upstreams whose files the site holds, in the book's order."""
    present = {upstream for upstream, _ in shelf.sheets}
    return [name for name in shelf.book.upstreams if name in present]
