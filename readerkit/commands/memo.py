"""Remembers what was parsed and found in order, so that reading again is quick.

Each memory is one file in the cache: a digest, then JSON keyed by what it was made
from. Whatever is wrong with it, or newer than it, everything is parsed anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from readerkit import __version__
from readerkit.anchor import Anchor, Span
from readerkit.commands.folders import PACKAGE
from readerkit.document import Kind, YamlFile
from readerkit.errors import StoreError

if TYPE_CHECKING:
    from readerkit.book import Located
    from readerkit.reading import BookFile


class Memo:
    """The parsed files of one book."""

    def __init__(self, cache: Path, book: Path) -> None:
        self._path = _file(cache, book, ".parsed")
        self._known = _load(self._path)
        self._used: dict[str, Any] = {}

    def read(self, file: BookFile, kind: Kind) -> YamlFile:
        """Return the document of a file of a book.

        Raises:
            ContentError: a file that is no YAML.
        """
        return self.parsed(file.data, file.name, kind)

    def parsed(self, data: bytes, name: str, kind: Kind) -> YamlFile:
        """Return the document in ``data``, from memory where the bytes are the same.

        Only a document without faults is remembered.

        Raises:
            ContentError: a file that is no YAML.
        """
        head = f"{__version__} {kind} ".encode()
        key = hashlib.sha256(head + data).hexdigest()
        plain: Any = self._known.get(key)
        try:
            document = YamlFile.from_plain(plain, name)
        except (TypeError, KeyError, ValueError):
            from readerkit.schema import read_document

            document = read_document(data, name, kind)
            plain = None if document.faults else document.to_plain()
        if plain is not None:
            self._used[key] = plain
        return document

    def save(self) -> None:
        """Keep what this run used."""
        if self._used.keys() != self._known.keys():
            _save(self._path, self._used)


class Places:
    """What the anchors on one upstream were found at.

    Good for showing: whatever is held against a lock is found anew.
    """

    def __init__(self, cache: Path, book: Path, upstream: str) -> None:
        self._path = _file(cache, book, f"-{upstream}.places")
        self._made_by = _made_by()
        kept = _load(self._path)
        is_ours = kept.get("made_by") == self._made_by
        self._known: dict[str, Any] = kept["places"] if is_ours else {}
        self._used: dict[str, Any] = {}

    def find(self, blob: str, anchor: Anchor, look: Callable[[], Located]) -> Located:
        """Return where an anchor stands in a blob: from memory, or else by ``look``."""
        key = f"{blob} {json.dumps(anchor.to_yaml())}"
        if key not in self._known:
            span, symbol = look()
            self._used[key] = span.first, span.last, symbol
            return span, symbol
        self._used[key] = first, last, symbol = self._known[key]
        return Span(anchor.file, first, last), symbol

    def save(self) -> None:
        """Keep what this run found, and of the rest what is in the same blobs."""
        if self._used.keys() <= self._known.keys():
            return
        blobs = {key.split()[0] for key in self._used}
        kept = {k: place for k, place in self._known.items() if k.split()[0] in blobs}
        _save(self._path, {"made_by": self._made_by, "places": kept | self._used})


def _made_by() -> str:
    """Return what finds a place: the code of ``anchors``, and the parser under it."""
    digest = hashlib.sha256(__version__.encode())
    for path in sorted((PACKAGE / "anchors").glob("*.py")):
        digest.update(path.read_bytes())
    for name in ("tree_sitter", "tree_sitter_python"):
        found = importlib.util.find_spec(name)
        folder = Path(found.origin).parent if found and found.origin else Path()
        for path in sorted(folder.glob("_binding*")):
            about = path.stat()
            digest.update(f"{path} {about.st_size} {about.st_mtime_ns}".encode())
    return digest.hexdigest()


def _file(cache: Path, book: Path, ending: str) -> Path:
    name = hashlib.sha256(os.fsencode(book)).hexdigest()[:16]
    return cache / "parsed" / f"{name}{ending}"


def _load(path: Path) -> dict[str, Any]:
    try:
        digest, _, body = path.read_bytes().partition(b"\n")
        if digest != _digest(body):
            return {}
        known: dict[str, Any] = json.loads(body)
    except (OSError, ValueError, RecursionError):
        return {}
    return known


def _save(path: Path, value: dict[str, Any]) -> None:
    """Keep a value; without a writable cache nothing is kept."""
    from readerkit.upstreams.store import write_atomically

    body = json.dumps(value).encode()
    with contextlib.suppress(StoreError):
        write_atomically(path, _digest(body) + b"\n" + body)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()
