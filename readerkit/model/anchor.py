"""What an author writes (Anchor), what it stands for (Span), how it is known again.

Apart from ``anchors``, which finds the lines: who speaks of places needs no parser.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, convert, to_builtins

from readerkit.errors import AnchorError
from readerkit.model.base import Count, Model, Problem, Text, pattern
from readerkit.model.git_names import TreePath, parse_path, place_text


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Lines of one file, counted from 1, both ends included."""

    path: TreePath
    first: int
    last: int

    def __str__(self) -> str:
        """Return it as editors know it."""
        return place_text(self.path, self.first, self.last)


class Anchor(Model, frozen=True, rename={"start": "from", "stop": "to"}):
    """How an annotation names a place: never by line number.

    >>> Anchor(file="a.py", symbol="Linear.forward", code="reduce(...)").to_yaml()
    {'file': 'a.py', 'symbol': 'Linear.forward', 'code': 'reduce(...)'}
    """

    file: Annotated[
        TreePath,
        pattern("^\\S([\\s\\S]*\\S)?$"),
        Meta(description="Path from the root of the upstream."),
    ]
    symbol: Annotated[
        Text | None,
        Meta(description="A definition: Class.method, outer.inner."),
    ] = None
    """A class or function, nested names joined by dots; alone: the whole definition."""
    code: Annotated[
        Text | None, Meta(description="A pattern; ... stands for anything.")
    ] = None
    """A pattern that matches one node inside the symbol, or inside the file."""
    start: Annotated[
        Text | None, Meta(description="The pattern where a range begins.")
    ] = None
    stop: Annotated[Text | None, Meta(description="The pattern where it ends.")] = None
    query: Annotated[
        Text | None, Meta(description="A tree-sitter query with one @anchor capture.")
    ] = None
    nth: Annotated[
        Count | None, Meta(description="Which of equal matches, from 1.")
    ] = None
    """Of the symbol, code, query or ``from``."""
    to_nth: Annotated[
        Count | None, Meta(description="Which of equal matches of 'to', from 1.")
    ] = None
    """Counted from the range's start."""

    @property
    def counts(self) -> bool:
        """Whether it picks one of equal places by its number."""
        return self.nth is not None or self.to_nth is not None

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Anchor:
        """Return the anchor that a YAML mapping describes.

        Raises:
            AnchorError: keys that contradict each other, or a path that leaves the
                upstream.
        """
        anchor = convert(value, cls)
        if contradiction := anchor.contradiction():
            raise AnchorError(contradiction)
        return anchor

    def contradiction(self) -> str:
        """Return how its keys contradict each other, or its path leaves; or nothing."""
        try:
            parse_path(self.file)
        except ValueError as error:
            return str(error)
        given = (self.code, self.start or self.stop, self.query)
        pairs = zip(("code", "from/to", "query"), given, strict=True)
        ways = [name for name, used in pairs if used is not None]
        if len(ways) > 1:
            return f"got {' and '.join(ways)} together, expected one of them"
        if (self.start is None) != (self.stop is None):
            got, missing = ("from", "to") if self.start else ("to", "from")
            return f"got '{got}' alone, expected '{missing}' beside it"
        if not ways and self.symbol is None:
            return "got a file alone, expected a symbol, code, from and to, or a query"
        if self.to_nth is not None and self.stop is None:
            return "got 'to_nth' without 'to', expected a range"
        return ""

    def problems(self) -> Iterator[Problem]:
        """Yield its contradiction."""
        if contradiction := self.contradiction():
            yield f"anchor: {contradiction}", "", ""

    def to_yaml(self) -> dict[str, str | int]:
        """Return the mapping that ``parse`` reads, without empty keys."""
        mapping: dict[str, str | int] = to_builtins(self)
        return mapping


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
