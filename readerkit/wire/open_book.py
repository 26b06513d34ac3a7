"""The book that an editor has open: read again once a file of it was saved."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from readerkit.anchors import SourceFile, Span, resolve
from readerkit.app.library import Library, open_library
from readerkit.content.annotations import Annotation
from readerkit.content.resolved_notes import resolve_each
from readerkit.errors import AnchorError, ContentError, ContentFault, ReaderkitError
from readerkit.model.git_names import TreePath
from readerkit.upstreams import Upstream

LOOKED_AT_S = 1.0
"""For so long a book that was read counts as the one on the disk."""


@dataclass(frozen=True, slots=True)
class NotedFile:
    """A file that is open, as the upstream has it."""

    upstream: Upstream
    path: TreePath


@dataclass(frozen=True, slots=True)
class PlacedNote:
    """A note, and its lines in the text of an editor."""

    annotation: Annotation
    upstream: Upstream
    span: Span


@dataclass(slots=True)
class OpenBook:
    """A book, and which of its files an editor shows."""

    folder: Path | None
    _library: Library | None = None
    _read_at: float = 0.0
    _stamp: object = None
    _homes: dict[str, list[NotedFile]] = field(default_factory=dict)

    def library(self) -> Library:
        """Return the book as it is now; while it has faults, as it last was without.

        Raises:
            ReaderkitError: it has had faults from the beginning.
        """
        now = time.monotonic()
        if self._library and now - self._read_at < LOOKED_AT_S:
            return self._library
        stamp = self._library and _stamp(self._library)
        if self._library is None or stamp != self._stamp:
            try:
                self._library = open_library(self.folder, quiet=True)
            except ContentError:
                if self._library is None:
                    raise
            self._stamp, self._homes = _stamp(self._library), {}
        self._read_at = now
        return self._library

    def forget(self) -> None:
        """Look at the disk the next time that somebody asks."""
        self._read_at = float("-inf")

    def home_of(self, file: Path) -> NotedFile | None:
        """Return what a file on this disk is in the book: the longest path of it."""
        if not self._homes:
            self._homes = _homes(self.library())
        shown = file.as_posix()
        fits = [
            each
            for each in self._homes.get(file.name, ())
            if shown.endswith(f"/{each.path}")
        ]
        return max(fits, key=lambda each: len(each.path), default=None)

    def notes_in(
        self, file: Path, text: str
    ) -> tuple[list[PlacedNote], list[tuple[Annotation, AnchorError]]]:
        """Return the notes on a file where they stand in a text, and those that do not.

        The text is that of the editor: the pinned file, or a work tree's of today.
        """
        home = self.home_of(file)
        if home is None:
            return [], []
        on = self.library().book.notes_on(home.upstream.name)
        notes = [note for note in on if note.anchor.file == home.path]
        if not notes:
            return [], []
        placed: list[PlacedNote] = []
        lost: list[tuple[Annotation, AnchorError]] = []
        try:
            source = SourceFile(home.path, text.encode("utf-8", "surrogatepass"))
        except AnchorError as error:
            return [], [(note, error) for note in notes]
        for note in notes:
            try:
                span = resolve(note.anchor, source)
                placed.append(PlacedNote(note, home.upstream, span))
            except AnchorError as error:
                lost.append((note, error))
        return sorted(placed, key=lambda each: (each.span, each.annotation.id)), lost

    def part_of_book(self, file: Path) -> Path | None:
        """Return the top of the book, or the overlay, that a YAML file belongs to."""
        if file.suffix != ".yaml":
            return None
        library = self.library()
        for top in (library.root, library.mine):
            if file.is_relative_to(top / "annotations"):
                return top
        return None

    def faults_in(self, file: Path, text: str) -> list[ContentFault]:
        """Return what is wrong in a file of the book, with a text that is not saved."""
        data = text.encode("utf-8", "surrogatepass")
        try:
            fresh = open_library(
                self.folder, whole=True, quiet=True, as_if=(file, data)
            )
        except ContentError as error:
            return [fault for fault in error.faults if is_file(fault.file, file)]
        except ReaderkitError as error:
            return [ContentFault(str(file), 1, 1, str(error))]
        return [
            fault
            for upstream in fresh.book.upstreams.values()
            for fault in _unresolved(fresh, upstream, file)
        ]


def is_file(named: str, file: Path) -> bool:
    """Tell whether a fault is in a file: it names the path from the top of the book."""
    return file.as_posix().endswith(f"/{named.lstrip('/')}")


def _unresolved(library: Library, upstream: Upstream, file: Path) -> list[ContentFault]:
    here = [
        note
        for note in library.book.anchored_in(upstream.name)
        if is_file(note.place.file, file)
    ]
    if not here:
        return []
    return resolve_each(library.book, library.sources(upstream), here)[1]


def _homes(library: Library) -> dict[str, list[NotedFile]]:
    found: dict[str, list[NotedFile]] = {}
    for upstream in library.book.upstreams.values():
        paths = (
            library.lock(upstream).files
            if upstream.is_pinned
            else library.sources(upstream).paths
        )
        for path in paths:
            name = path.rpartition("/")[2]
            found.setdefault(name, []).append(NotedFile(upstream, path))
    return found


def _stamp(library: Library) -> object:
    """Return what changes when a file of the book does."""
    found = []
    for top in (library.root, library.mine):
        for file in (top / "annotations").rglob("*.yaml"):
            try:
                about = file.stat()
            except OSError:  # gone since it was listed
                continue
            found.append((str(file), about.st_mtime_ns, about.st_size))
    return sorted(found)
