"""The entries of a book's files, each where it is written, before they are a Book."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from readerkit.content.annotations import (
    ANNOTATIONS,
    COMPARISONS,
    CONCEPTS,
    REFERENCES,
    Annotation,
)
from readerkit.content.book import Book
from readerkit.content.kind import Document, Kind
from readerkit.content.mirrors import MIRROR
from readerkit.content.tours import TOUR, TOUR_TRANSLATION
from readerkit.content.translations import (
    CONCEPT_TRANSLATION,
    MIRROR_TRANSLATION,
    NOTE_TRANSLATION,
    Translation,
)
from readerkit.upstreams import Lock, Upstream

if TYPE_CHECKING:
    from readerkit.content.strict_yaml import Path

E = TypeVar("E")

NAMED_BY: Mapping[Kind[Any], str] = {
    ANNOTATIONS: "id",
    MIRROR: "id",
    TOUR: "id",
    CONCEPTS: "id",
    REFERENCES: "key",
    COMPARISONS: "name",
}
"""What each kind of entry is called by."""


@dataclass(frozen=True, slots=True)
class WrittenEntry(Generic[E]):
    """An entry, and where it is written."""

    entry: E
    document: Document[E]
    path: Path


@dataclass(frozen=True, slots=True)
class Translated:
    """A sidecar: of which kind, and in which language."""

    kind: Kind[Any]
    language: str
    document: Document[Translation]


@dataclass(slots=True)
class WrittenBook:
    """All that the files of a book hold."""

    upstreams: dict[str, Upstream] = field(default_factory=dict)
    locks: dict[str, Lock] = field(default_factory=dict)
    lock_files: dict[str, str] = field(default_factory=dict)
    """What messages call the first file of each lock."""
    entries: dict[Kind[Any], list[WrittenEntry[Any]]] = field(
        default_factory=lambda: {kind: [] for kind in NAMED_BY}
    )
    unplaced: list[WrittenEntry[Annotation]] = field(default_factory=list)
    """Notes whose anchor is none: what they name is checked all the same."""
    translated: list[Translated] = field(default_factory=list)
    unread: set[Kind[Any]] = field(default_factory=set)
    """Kinds of files of which one could not be read: what it names is not known."""
    refused: set[str] = field(default_factory=set)
    """Ids of entries with faults: they exist, whatever of them could be read."""

    def by_name(self, kind: Kind[Any]) -> dict[str, Any]:
        """Return the entries of a kind by what they are called; the last of several."""
        entries = (written.entry for written in self.entries[kind])
        return {getattr(entry, NAMED_BY[kind]): entry for entry in entries}

    def book(self) -> Book:
        """Return the book that these are."""
        return Book(
            self.upstreams,
            self.locks,
            self.by_name(ANNOTATIONS),
            self.by_name(MIRROR),
            self.by_name(CONCEPTS),
            self.by_name(REFERENCES),
            self._translations(NOTE_TRANSLATION),
            self._translations(CONCEPT_TRANSLATION),
            self.by_name(COMPARISONS),
            self._translations(MIRROR_TRANSLATION),
            self.by_name(TOUR),
            self._translations(TOUR_TRANSLATION),
        )

    def _translations(self, kind: Kind[Any]) -> dict[str, dict[str, Any]]:
        """Return one kind of translations: language to id."""
        found: dict[str, dict[str, Any]] = {}
        for each in self.translated:
            if each.kind is kind:
                entries = each.document.entries.items()
                texts = {str(key): entry for (key,), entry in entries}
                found.setdefault(each.language, {}).update(texts)
        return found
