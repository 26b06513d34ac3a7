"""What a question is made concrete with: parameter values, functions, resolved keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from readerkit.errors import ReaderkitError
from readerkit.model.expression import Functions, Number, evaluate
from readerkit.model.git_names import (
    NO_BLOB,
    BlobId,
    TreePath,
    parse_lines,
    parse_path,
    parse_upstream,
)
from readerkit.model.stored import HEX_ID, Stored
from readerkit.wording.next_command import typed

_SLOT = re.compile(r"\{([^{}]+)\}")

Fact = Number | tuple[str, ...]
"""What a record says: a number, or words in their order."""


class AnswerError(ReaderkitError):
    """An answer that cannot be read as one: it is not marked, but typed again."""


class KeyMissingError(ReaderkitError):
    """A key that the bank's lock does not hold."""


class ResolvedPlace(Stored, frozen=True, omit_defaults=True):
    """Resolved lines of an upstream or a mini, as the lock has them."""

    upstream: str
    path: TreePath
    first: int
    last: int
    blob: Annotated[BlobId, HEX_ID] = NO_BLOB
    """Git's id of the file's bytes; empty for a mini, which is read as it stands."""
    note: str = ""
    """The annotation that these lines belong to."""
    title: str = ""
    """Of that annotation."""

    def __post_init__(self) -> None:
        """Refuse lines that are none, and names that lead elsewhere."""
        parse_lines(self.first, self.last)
        parse_upstream(self.upstream)
        parse_path(self.path)

    def __str__(self) -> str:
        """Return ``path:first-last``."""
        lines = f"{self.first}-{self.last}" if self.last > self.first else self.first
        return f"{self.path}:{lines}"


class Work(Stored, frozen=True):
    """A paper or page that questions point to."""

    title: str
    authors: str
    year: int
    url: Annotated[str, Meta(pattern="^https://")]


@dataclass(frozen=True, slots=True)
class Keys:
    """What lint resolved: places by slot, facts by question."""

    places: Mapping[str, ResolvedPlace] = field(default_factory=dict)
    """``QUESTION/slot`` of a place in the bank, ``note:ID`` of an annotation."""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    works: Mapping[str, Work] = field(default_factory=dict)
    """References by key."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that one variant depends on."""

    question: str
    values: Mapping[str, Number]
    """Parameters as they are displayed."""
    functions: Functions
    keys: Keys

    def number(self, formula: str) -> Number:
        """Return the value of a formula over the parameters."""
        return evaluate(formula, self.values, self.functions)

    def whole(self, formula: str) -> int:
        """Return the value of a formula that counts something.

        Raises:
            ReaderkitError: a value that is no whole number.
        """
        value = self.number(formula)
        if value != int(value):
            raise ReaderkitError(f"'{formula}': got {value}, expected a whole number")
        return int(value)

    def text(self, template: str) -> str:
        """Return a text with each ``{formula}`` replaced by its value."""
        return _SLOT.sub(lambda m: format_number(self.number(m[1])), template)

    def place(self, slot: str) -> ResolvedPlace:
        """Return the lines of a slot of this question, or of ``note:ID``.

        Raises:
            KeyMissingError: the lock has none.
        """
        name = slot if slot.startswith("note:") else f"{self.question}/{slot}"
        if name not in self.keys.places:
            raise KeyMissingError(_missing(name))
        return self.keys.places[name]

    def work(self, key: str) -> Work:
        """Return a reference.

        Raises:
            KeyMissingError: the lock has none.
        """
        if key not in self.keys.works:
            raise KeyMissingError(_missing(f"reference {key}"))
        return self.keys.works[key]

    def fact(self) -> Fact:
        """Return the locked fact of this question.

        Raises:
            KeyMissingError: the lock has none.
        """
        if self.question not in self.keys.facts:
            raise KeyMissingError(_missing(self.question))
        return self.keys.facts[self.question]


def formulas_of(template: str) -> list[str]:
    """Return the formulas between the braces of a text."""
    return _SLOT.findall(template)


def format_number(value: Number) -> str:
    """Return a number for readers: whole ones exactly, others to four digits.

    >>> format_number(16384), format_number(4096.0), format_number(0.18756)
    ('16,384', '4096', '0.1876')
    """
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))
    rounded = float(f"{value:.4g}")
    if abs(rounded) >= 10_000 and abs(rounded) < 1e15:
        return f"{rounded:,.0f}"
    return f"{rounded:.12g}"


def _missing(name: str) -> str:
    return (
        f"{name}: the lock of this bank holds no such key: make it anew with "
        + typed("quiz", "lint", "--update-lock")
    )
