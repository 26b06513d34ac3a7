"""Which notes this reader has read, in whichever browser: a file of their ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from readerkit.upstreams.store import write_atomically

MAX_READ = 10_000
"""Ids of notes that one reader may have read."""


class ReadNotes:
    """The ids in a file; what cannot be read of it counts as none."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def ids(self) -> list[str]:
        """Return what was read."""
        try:
            kept: Any = json.loads(self.file.read_bytes())
        except (OSError, ValueError):
            return []
        return [each for each in kept if _is_id(each)] if isinstance(kept, list) else []

    def add(self, body: bytes) -> list[str]:
        """Add ids, which are JSON, and return all of them.

        Raises:
            ValueError: something else than a list of ids.
        """
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):  # the latter: nested too deeply
            given = None
        if not isinstance(given, list) or not all(_is_id(each) for each in given):
            raise ValueError("expected a list of ids")
        known = self.ids()
        merged = list(dict.fromkeys([*known, *given]))[:MAX_READ]
        if merged != known:
            write_atomically(self.file, json.dumps(merged).encode(), private=True)
        return merged


def _is_id(value: Any) -> bool:
    """Return whether this may be an id: half of a surrogate pair is no text."""
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        return False
    return not any("\ud800" <= each <= "\udfff" for each in value)
