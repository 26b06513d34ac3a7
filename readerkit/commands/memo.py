"""Remembers files that were parsed and found in order, so that reading again is quick.

One JSON file in the cache, keyed by what was read: kind, bytes, and the version of this
toolkit. Whatever is wrong with it, the files are parsed anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

from readerkit import __version__
from readerkit.book import BookFile, read_strictly
from readerkit.document import Kind, YamlFile
from readerkit.errors import StoreError
from readerkit.upstreams.store import write_atomically


class Memo:
    """The parsed files of one book."""

    def __init__(self, cache: Path, book: Path) -> None:
        name = hashlib.sha256(str(book).encode()).hexdigest()[:16]
        self._path = cache / "parsed" / f"{name}.json"
        self._known = self._load()
        self._used: dict[str, Any] = {}

    def read(self, file: BookFile, kind: Kind) -> YamlFile:
        """Return the document of a file, from memory where its bytes are the same.

        Only a document without faults is remembered.

        Raises:
            ContentError: a file that is no YAML.
        """
        head = f"{__version__} {kind} ".encode()
        key = hashlib.sha256(head + file.data).hexdigest()
        plain: Any = self._known.get(key)
        try:
            document = YamlFile.from_plain(plain, file.name)
        except (TypeError, KeyError, ValueError):
            document = read_strictly(file, kind)
            plain = None if document.faults else document.to_plain()
        if plain is not None:
            self._used[key] = plain
        return document

    def save(self) -> None:
        """Keep what this run used; without a writable cache nothing is kept."""
        if self._used.keys() != self._known.keys():
            with contextlib.suppress(StoreError):
                write_atomically(self._path, json.dumps(self._used).encode())

    def _load(self) -> dict[str, Any]:
        try:
            known = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}
