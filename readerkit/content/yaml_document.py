"""A hand-written file once it is parsed: plain values, and where each one stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from readerkit.errors import ContentFault

Path = tuple[str | int, ...]
"""Where a value sits: keys and list positions from the top."""

Mark = tuple[int, int]
"""Line and column, both counted from 1."""


@dataclass(slots=True)
class YamlFile:
    """One document: its plain value, and the marks of its values and keys.

    ``faults`` are the things that such a file must not hold; where one stands, the
    value may hold a stand-in, so that the rest can still be checked.
    """

    file: str
    value: Any = None
    value_marks: dict[Path, Mark] = field(default_factory=dict)
    key_marks: dict[Path, Mark] = field(default_factory=dict)
    faults: list[ContentFault] = field(default_factory=list)

    def mark(self, path: Path) -> Mark:
        """Return where the value at ``path`` stands, or its nearest parent."""
        while path and path not in self.value_marks:
            path = path[:-1]
        return self.value_marks.get(path, (1, 1))

    def key_mark(self, path: Path) -> Mark:
        """Return where the key at ``path`` stands, or its value's mark."""
        return self.key_marks.get(path) or self.mark(path)

    def fault(
        self, path: Path, what: str, got: str = "", expected: str = ""
    ) -> ContentFault:
        """Return a fault at the value at ``path``."""
        return ContentFault(self.file, *self.mark(path), what, got, expected)
