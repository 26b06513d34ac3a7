"""What an author writes (Anchor), what it stands for (Span), how it is known again.

Apart from ``anchors``, which finds the lines: who speaks of places needs no parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from readerkit.errors import AnchorError
from readerkit.git_names import TreePath, parse_path


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Lines of one file, counted from 1, both ends included."""

    path: TreePath
    first: int
    last: int

    def __str__(self) -> str:
        """Return ``path:first-last``, the form that editors and readers know."""
        return f"{self.path}:{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class Anchor:
    """How an annotation names a place: never by line number.

    >>> Anchor(file="a.py", symbol="Linear.forward", code="all_reduce(...)")
    Anchor(file='a.py', symbol='Linear.forward', code='all_reduce(...)', ...)
    """

    file: TreePath
    symbol: str | None = None
    """A class or function, nested names joined by dots; alone: the whole definition."""
    code: str | None = None
    """A pattern that matches one node inside the symbol, or inside the file."""
    start: str | None = None
    """``from`` in YAML: the pattern where a range begins."""
    stop: str | None = None
    """``to`` in YAML: the pattern where a range ends."""
    query: str | None = None
    """A tree-sitter query with one ``@anchor`` capture."""
    nth: int | None = None
    """Which of equal matches, from 1: of the symbol, code, query or ``from``."""
    to_nth: int | None = None
    """Which of equal matches of ``to``, counted from the range's start."""

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Anchor:
        """Return the anchor that a YAML mapping describes.

        Raises:
            AnchorError: keys that contradict each other, or a path that leaves the
                upstream.
        """
        given = {_FIELD_OF.get(key, key): item for key, item in value.items()}
        try:
            anchor = cls(**{**given, "file": parse_path(given.get("file"))})
        except ValueError as error:
            raise AnchorError(str(error)) from None
        ways = [
            name
            for name, used in (
                ("code", anchor.code),
                ("from/to", anchor.start or anchor.stop),
                ("query", anchor.query),
            )
            if used is not None
        ]
        if len(ways) > 1:
            raise AnchorError(
                f"got {' and '.join(ways)} together, expected one of them"
            )
        if (anchor.start is None) != (anchor.stop is None):
            got, missing = ("from", "to") if anchor.start else ("to", "from")
            raise AnchorError(f"got '{got}' alone, expected '{missing}' beside it")
        if not ways and anchor.symbol is None:
            raise AnchorError(
                "got a file alone, expected a symbol, code, from and to, or a query"
            )
        if anchor.to_nth is not None and anchor.stop is None:
            raise AnchorError("got 'to_nth' without 'to', expected a range")
        return anchor

    def to_yaml(self) -> dict[str, str | int]:
        """Return the mapping that ``parse`` reads, without empty keys."""
        items = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {
            _KEY_OF.get(name, name): item for name, item in items if item is not None
        }


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Hashes of the tokens in and around a span, as short hexadecimal strings."""

    code: str
    """Of all tokens of the span: what a person reviews a note against."""
    lines: tuple[str, ...]
    """Of each line; empty for one without tokens."""
    before: str
    """Of the nearest lines with tokens above the span."""
    after: str
    """Of the nearest lines with tokens below it."""
    symbol: str
    """Of the smallest definition around the span; empty at module level."""


_KEY_OF = {"start": "from", "stop": "to"}
_FIELD_OF = {key: name for name, key in _KEY_OF.items()}
