"""Remembers what was parsed and found in order, so that reading again is quick.

Each memory is one file in the cache: a digest, then JSON keyed by what it was made
from. Whatever is wrong with it, or newer than it, everything is parsed anew.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import MsgspecError, Raw, Struct, json

from readerkit.app.cached_files import (
    code_digest,
    keep,
    kept_file,
    parsed_by,
    read_kept,
)
from readerkit.content.kind import Document, E, Kind
from readerkit.model.anchor import Anchor, Span
from readerkit.model.code_languages import language_of
from readerkit.model.freshness import digest

if TYPE_CHECKING:
    from readerkit.content.parse_book import BookFile
    from readerkit.content.resolved_notes import Located


class Memo:
    """The parsed files of one book."""

    def __init__(self, folder: Path, book: Path) -> None:
        self._path = kept_file(folder, book, ".parsed")
        self._known = _load(self._path, dict[str, Raw]) or {}
        self._used: dict[str, Raw] = {}

    def read(self, file: BookFile, kind: Kind[E], /) -> Document[E]:
        """Return the document of a file of a book.

        Raises:
            ContentError: a file that is no YAML.
        """
        return self.parsed(file.data, file.name, kind)

    def parsed(self, data: bytes, name: str, kind: Kind[E]) -> Document[E]:
        """Return the document in ``data``, from memory where the bytes are the same.

        Only a document without faults is remembered, and under its name: its entries
        say where they stand.

        Raises:
            ContentError: a file that is no YAML.
        """
        head = f"{parsed_by()} {kind.name} {name}\0".encode()
        key = digest(head + data)
        kept = self._known.get(key, Raw())
        try:
            entries = kind.entries(json.decode(kept, type=kind.whole))
            document: Document[E] = Document(name, data, entries)
        except MsgspecError:
            from readerkit.content.validation import read_document

            document = read_document(data, name, kind)
            whole = None if document.faults else kind.together(document.entries)
            kept = Raw() if document.faults else Raw(json.encode(whole))
        if kept:
            self._used[key] = kept
        return document

    def save(self) -> None:
        """Keep what this run used."""
        if self._used.keys() != self._known.keys():
            _save(self._path, self._used)


class _Kept(Struct, frozen=True):
    """The file of places: first line, last line, definition of each."""

    made_by: str
    places: dict[str, tuple[int, int, str]]


class FoundPlaces:
    """What the anchors on one upstream were found at.

    Good for showing, and for code that lives on; in what is pinned, whatever is held
    against a lock is found anew.
    """

    def __init__(self, folder: Path, book: Path, upstream: str) -> None:
        self._path = kept_file(folder, book, f"-{upstream}.places")
        self._made_by = _made_by()
        kept = _load(self._path, _Kept)
        is_ours = kept is not None and kept.made_by == self._made_by
        self._known = kept.places if kept and is_ours else {}
        self._used: dict[str, tuple[int, int, str]] = {}
        self._is_new = False

    def find(self, blob: str, anchor: Anchor, look: Callable[[], Located]) -> Located:
        """Return where an anchor stands in a blob: from memory, or else by ``look``."""
        key = _key(blob, anchor)
        if key not in self._known:
            self.learn(blob, anchor, located := look())
            return located
        self._used[key] = first, last, symbol = self._known[key]
        return Span(anchor.file, first, last), symbol

    def knows(self, blob: str, anchor: Anchor) -> bool:
        """Tell whether an anchor in a blob was found before."""
        return _key(blob, anchor) in self._known

    def learn(self, blob: str, anchor: Anchor, located: Located) -> None:
        """Take in where an anchor stands in a blob."""
        span, symbol = located
        key = _key(blob, anchor)
        self._known[key] = self._used[key] = span.first, span.last, symbol
        self._is_new = True

    def save(self) -> None:
        """Keep what this run found, and of the rest what is in the same blobs."""
        if not self._is_new:
            return
        blobs = {key.split()[0] for key in self._used}
        kept = {k: place for k, place in self._known.items() if k.split()[0] in blobs}
        _save(self._path, _Kept(self._made_by, kept | self._used))


def _key(blob: str, anchor: Anchor) -> str:
    return f"{blob} {json.encode(anchor).decode()}{_grammar_mark(anchor.file)}"


def _made_by() -> str:
    """Return the digest of the resolver: the code of ``anchors``, and its parser."""
    bindings = (_binding(name) for name in ("tree_sitter", "tree_sitter_python"))
    return digest(f"{code_digest('anchors')} {[*bindings]}")


def _binding(package: str) -> list[tuple[int, int]]:
    """Return size and time of what a grammar is compiled to."""
    found = importlib.util.find_spec(package)
    folder = Path(found.origin).parent if found and found.origin else Path()
    files = (path.stat() for path in sorted(folder.glob("_bind*")))
    return [(each.st_size, each.st_mtime_ns) for each in files]


def _grammar_mark(path: str) -> str:
    """Return what grammar reads a file; nothing of Python's, which is in every key."""
    language = language_of(path)
    if language is None or language.is_python:
        return ""
    return f" {language.title} {_binding(language.package)}"


_T = TypeVar("_T")


def _load(path: Path, kind: type[_T]) -> _T | None:
    try:
        return json.decode(read_kept(path) or b"", type=kind)
    except (MsgspecError, RecursionError):
        return None


def _save(path: Path, value: object) -> None:
    keep(path, json.encode(value))
