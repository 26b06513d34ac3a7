"""Remembers files that were parsed and found in order, so that reading again is quick.

One file in the cache: a digest, then JSON keyed by what was read (kind, bytes, and the
version of this toolkit). Whatever is wrong with it, the files are parsed anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from readerkit import __version__
from readerkit.document import Kind, YamlFile
from readerkit.errors import StoreError

if TYPE_CHECKING:
    from readerkit.reading import BookFile


class Memo:
    """The parsed files of one book."""

    def __init__(self, cache: Path, book: Path) -> None:
        name = hashlib.sha256(os.fsencode(book)).hexdigest()[:16]
        self._path = cache / "parsed" / f"{name}.parsed"
        self._known = self._load()
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
        """Keep what this run used; without a writable cache nothing is kept."""
        if self._used.keys() != self._known.keys():
            from readerkit.upstreams.store import write_atomically

            body = json.dumps(self._used).encode()
            with contextlib.suppress(StoreError):
                write_atomically(self._path, _digest(body) + b"\n" + body)

    def _load(self) -> dict[str, Any]:
        try:
            digest, _, body = self._path.read_bytes().partition(b"\n")
            if digest != _digest(body):
                return {}
            known: dict[str, Any] = json.loads(body)
        except (OSError, ValueError, RecursionError):
            return {}
        return known


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()
