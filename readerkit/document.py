"""A hand-written file once it is parsed: plain values, and where each one stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from readerkit.errors import Fault

Kind = Literal[
    "annotations",
    "translation",
    "concept-translation",
    "route-translation",
    "diagram-translation",
    "mirror",
    "comparisons",
    "concepts",
    "references",
    "upstreams",
    "models",
    "hardware",
    "prices",
    "diagram",
    "questions",
    "bank",
]
"""What a file of a book is, by its place; and the files of catalog and site."""

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
    faults: list[Fault] = field(default_factory=list)
    broken: set[str | int | None] = field(default_factory=set)
    """Top-level keys or positions whose values do not fit; None: nothing does."""
    misfits: set[Path] = field(default_factory=set)
    """The places of what does not fit; of a missing or unknown key, what it is in."""

    def mark(self, path: Path) -> Mark:
        """Return where the value at ``path`` stands, or its nearest parent."""
        while path and path not in self.value_marks:
            path = path[:-1]
        return self.value_marks.get(path, (1, 1))

    def key_mark(self, path: Path) -> Mark:
        """Return where the key at ``path`` stands, or its value's mark."""
        return self.key_marks.get(path) or self.mark(path)

    def fault(self, path: Path, what: str, got: str = "", expected: str = "") -> Fault:
        """Return a fault at the value at ``path``."""
        return Fault(self.file, *self.mark(path), what, got, expected)

    def to_plain(self) -> dict[str, Any]:
        """Return what ``from_plain`` reads: the value, and marks of entries.

        A scalar's mark is left out: in a file without faults nobody asks for it.
        """
        marks = [
            [list(path), *mark]
            for path, mark in self.value_marks.items()
            if isinstance(self.find(path), (dict, list))
        ]
        keys = [
            [list(path), *mark]
            for path, mark in self.key_marks.items()
            if len(path) == 1
        ]
        return {"value": self.value, "marks": marks, "keys": keys}

    @classmethod
    def from_plain(cls, plain: dict[str, Any], file: str) -> YamlFile:
        """Return the document that ``to_plain`` described."""
        marks, keys = (
            {tuple(path): (line, column) for path, line, column in plain[name]}
            for name in ("marks", "keys")
        )
        return cls(file, plain["value"], marks, keys)

    def find(self, path: Path) -> Any:
        """Return the value at ``path``, or None where there is none."""
        value = self.value
        for step in path:
            if isinstance(value, dict):
                value = value.get(step)
            else:
                value = value[step] if isinstance(step, int) else None
        return value
