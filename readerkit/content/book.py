"""Everything that people wrote, joined, with the locks it is held against.

``read_book`` makes the Book; ``resolved_notes`` adds the lines. Nothing here touches a
disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec.structs import replace

from readerkit.content.annotations import (
    ANNOTATIONS,
    COMPARISONS,
    CONCEPTS,
    CONDITIONS,
    REFERENCES,
    Annotation,
    CitedWork,
    ComparisonName,
    Concept,
    Condition,
)
from readerkit.content.claims import Claimed
from readerkit.content.kind import Document, Kind
from readerkit.content.mirrors import MIRROR, Difference, Mirror, MirrorSection
from readerkit.content.tours import TOUR, TOUR_TRANSLATION, Tour, TranslatedTour
from readerkit.content.translations import (
    CONCEPT_TRANSLATION,
    CONDITION_TRANSLATION,
    MIRROR_TRANSLATION,
    NOTE_TRANSLATION,
    TranslatedMirror,
    Translation,
)
from readerkit.model.anchor import Anchor
from readerkit.upstreams import Lock, Upstream

if TYPE_CHECKING:
    from readerkit.content.strict_yaml import Path

MINIS = "minis"
"""The name of the upstream whose folder holds the mini implementations that run."""


@dataclass(frozen=True, slots=True)
class Book:
    """All that was written, and the locks it is held against."""

    upstreams: Mapping[str, Upstream]
    locks: Mapping[str, Lock]
    annotations: Mapping[str, Annotation]
    """By id, over all upstreams."""
    mirrors: Mapping[str, Mirror]
    concepts: Mapping[str, Concept]
    references: Mapping[str, CitedWork]
    translations: Mapping[str, Mapping[str, Translation]] = field(default_factory=dict)
    """Language to annotation id."""
    concept_translations: Mapping[str, Mapping[str, Translation]] = field(
        default_factory=dict
    )
    """Language to concept id."""
    comparisons: Mapping[str, ComparisonName] = field(default_factory=dict)
    """By name."""
    mirror_translations: Mapping[str, Mapping[str, TranslatedMirror]] = field(
        default_factory=dict
    )
    """Language to mirror id."""
    tours: Mapping[str, Tour] = field(default_factory=dict)
    tour_translations: Mapping[str, Mapping[str, TranslatedTour]] = field(
        default_factory=dict
    )
    """Language to tour id."""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    condition_translations: Mapping[str, Mapping[str, Translation]] = field(
        default_factory=dict
    )
    """Language to condition id."""

    def notes_on(self, upstream: str) -> list[Annotation]:
        """Return the annotations of one upstream in the order they were written."""
        return [a for a in self.annotations.values() if a.upstream == upstream]

    def claimed(self) -> list[Annotation | Mirror | Concept | Condition | Tour]:
        """Return all that may carry claims."""
        kinds = (self.annotations, self.mirrors, self.concepts, self.conditions)
        entries = (each for kind in kinds for each in kind.values())
        return [*entries, *self.tours.values()]

    def home_among(self, upstreams: Iterable[str], path: str) -> str:
        """Return the first of some upstreams that includes a file; or nothing."""
        return next((n for n in upstreams if self.upstreams[n].includes(path)), "")

    def asides_of(self, note: Annotation) -> list[Annotation]:
        """Return the other lines that a note shows, each as a note where it stands."""
        order = [note.upstream, *self.upstreams]
        return [
            replace(each, upstream=self.home_among(order, each.anchor.file))
            for each in note.asides()
        ]

    def anchored_in(self, upstream: str) -> list[Annotation]:
        """Return all that a lock of an upstream holds: its notes, and those lines."""
        every = (each for a in self.annotations.values() for each in self.asides_of(a))
        asides = [each for each in every if each.upstream == upstream]
        return [*self.notes_on(upstream), *asides]

    def translated(
        self, entry: Annotation | Concept | Condition, language: str
    ) -> Translation:
        """Return the translation of an entry; an empty one where there is none."""
        by_language = {
            Annotation: self.translations,
            Concept: self.concept_translations,
            Condition: self.condition_translations,
        }[type(entry)]
        return by_language.get(language, {}).get(entry.id, Translation())

    def presumed_by(self, note: Annotation) -> list[Condition]:
        """Return what a note presumes: what it names, then what every note does."""
        own = [self.conditions[name] for name in note.conditions]
        always = () if note.mine else self.conditions.values()
        return [*own, *(each for each in always if each.always and each not in own)]

    def conditions_of(self, note: Annotation, language: str) -> list[str]:
        """Return the words of what a note presumes; English where that has none."""
        said = self.presumed_by(note)
        return [self.translated(c, language).texts.get("title", c.title) for c in said]

    def texts_in(self, entry: str, part: Claimed, language: str) -> Mapping[str, str]:
        """Return the texts of a part of an entry in a language, those that it has."""
        if isinstance(part, Annotation | Concept | Condition):
            return self.translated(part, language).texts
        if entry not in self.mirrors:
            return {}
        other = self.mirror_in(entry, language).claimed()
        both = zip(self.mirrors[entry].claimed(), other, strict=True)
        texts = next((there.texts for here, there in both if here == part), part.texts)
        return {name: text for name, text in texts.items() if text != part.texts[name]}

    def mirror_in(self, name: str, language: str) -> Mirror:
        """Return a mirror in a language: English where that has no text."""
        said = self.mirror_translations.get(language, {}).get(name)
        mirror = self.mirrors[name]
        return mirror.with_texts(said) if said else mirror

    def tour_in(self, name: str, language: str) -> Tour:
        """Return a tour in a language: English where that has no text."""
        said = self.tour_translations.get(language, {}).get(name)
        return self.tours[name].with_texts(said) if said else self.tours[name]

    def reason_in(self, mirror: str, why: str, language: str) -> str:
        """Return what a mirror gives as a reason in a language; empty if it is none.

        What has several has them one behind the other.
        """
        if mirror not in self.mirrors:
            return ""
        both = zip(
            self.mirrors[mirror].sections,
            self.mirror_in(mirror, language).sections,
            strict=True,
        )
        known = {
            here.why: there.why
            for own, other in both
            for here, there in zip(own.differences, other.differences, strict=True)
        }
        given, rest = [], why
        while rest:
            begins = (e for e in known if rest == e or rest.startswith(f"{e}; "))
            first = max(begins, key=len, default="")
            if not first:
                return ""
            given.append(first)
            rest = rest[len(first) :].removeprefix("; ")
        if any(known[each] == each for each in given):
            return why
        return "; ".join(known[each] for each in given)

    def differences(self, comparison: str) -> list[tuple[str, Difference]]:
        """Return how the sides of a comparison may differ, each with its mirror."""
        return [
            (mirror.id, difference)
            for mirror in self.mirrors.values()
            for section in mirror.sections
            for allowed in section.differences
            if comparison in allowed.comparisons
            for difference in allowed.each()
        ]

    def home_of(self, path: str) -> str:
        """Return the folder upstream that holds a mini, or would if there was one."""
        folders = [
            each.name
            for each in self.upstreams.values()
            if each.folder and each.includes(path)
        ]
        return MINIS if MINIS in folders or not folders else folders[0]

    def minis_in(self, folder: str) -> list[Anchor]:
        """Return the lines that mirrors show of a folder."""
        anchors = (
            anchor
            for mirror in self.mirrors.values()
            for section in mirror.sections
            for anchor in section.mini
        )
        return [each for each in anchors if self.home_of(each.file) == folder]

    def minis_beside(self, annotation: str) -> tuple[str, ...]:
        """Return the names of the minis that a mirror puts beside an annotation."""
        names = [
            anchor.file.rpartition("/")[2].removesuffix(".py")
            for _, _, section in self.sections_with(annotation)
            for anchor in section.mini
        ]
        return tuple(dict.fromkeys(names))

    def sections_with(self, annotation: str) -> list[tuple[Mirror, int, MirrorSection]]:
        """Return the mirror sections that name a note, those of its own topic first."""
        note = self.annotations.get(annotation)
        own = note.topic.replace("_", "-") if note else ""
        found = [
            (mirror, index, section)
            for mirror in self.mirrors.values()
            for index, section in enumerate(mirror.sections)
            if annotation in section.upstream
        ]
        return sorted(found, key=lambda each: each[0].id != own)


E = TypeVar("E")

NAMED_BY: Mapping[Kind[Any], str] = {
    ANNOTATIONS: "id",
    MIRROR: "id",
    TOUR: "id",
    CONCEPTS: "id",
    CONDITIONS: "id",
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
            self.by_name(CONDITIONS),
            self._translations(CONDITION_TRANSLATION),
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
