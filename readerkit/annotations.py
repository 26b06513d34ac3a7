"""What people write about code, as values: annotations, mirrors, concepts, references.

Knows nothing of git, files or HTML: parsed YAML comes in, checked against its schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from readerkit.anchor import Anchor
from readerkit.counts import Count
from readerkit.document import Path, YamlFile
from readerkit.errors import AnchorError, ContentError, Fault
from readerkit.translations import english_stamp

TEXT_FIELDS = ("decision", "alternative", "why", "cost", "text")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry stands in the file that a person wrote."""

    file: str
    line: int
    column: int

    def fault(self, what: str, got: str = "", expected: str = "") -> Fault:
        """Return a fault at this place."""
        return Fault(self.file, self.line, self.column, what, got, expected)


@dataclass(frozen=True, slots=True)
class Citation:
    """A key of ``references.yaml``, and a section of that work."""

    key: str
    section: str = ""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A note on one place of one upstream."""

    id: str
    upstream: str
    anchor: Anchor
    kind: Literal["citation", "note", "pitfall"]
    title: str
    place: Place
    decision: str = ""
    alternative: str = ""
    why: str = ""
    cost: str = ""
    text: str = ""
    references: tuple[Citation, ...] = ()
    concepts: tuple[str, ...] = ()
    mine: bool = False
    """Whether it comes from the reader's own overlay book."""

    @property
    def stamp(self) -> str:
        """The name of its texts: what a translation of it is ``of``."""
        return english_stamp(getattr(self, name) for name in ("title", *TEXT_FIELDS))

    def with_texts(self, texts: Mapping[str, str]) -> Annotation:
        """Return the annotation with translated texts in place of its own."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return Annotation(**{**own, **texts})


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something upstream does and the mini does not."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A mini beside an upstream: what records, mirrors and commands call it."""

    name: str
    mini: str
    upstream: str
    title: str
    place: Place


@dataclass(frozen=True, slots=True)
class Event:
    """A collective of a comparison that belongs to a mirror's section."""

    comparison: str
    phase: str
    op: str
    group: str = ""


DifferenceKind = Literal[
    "only-mini",
    "only-upstream",
    "mini-waits-longer",
    "upstream-waits-longer",
    "payload",
    "order",
    "values",
]


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which the sides of a comparison may differ, how often, and why."""

    comparison: str
    what: DifferenceKind
    at_most: Count
    """Events on one rank; of ``values``: how far they may be apart."""
    why: str
    phase: str = ""
    """Empty: any phase. The same for the next two."""
    op: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class MirrorSection:
    """One step of an idea: the upstream notes and the mini lines that hold it."""

    title: str
    relation: str
    upstream: tuple[str, ...]
    """Annotation ids, of any upstream."""
    mini: tuple[Anchor, ...]
    places: tuple[Place, ...]
    """Where each anchor of ``mini`` is written."""
    leaves_out: tuple[LeftOut, ...]
    why: str
    events: tuple[Event, ...]
    place: Place
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Mirror:
    """One idea, and every place that holds it."""

    id: str
    title: str
    idea: str
    concepts: tuple[str, ...]
    sections: tuple[MirrorSection, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Concept:
    """An entry of the memory map."""

    id: str
    title: str
    summary: str
    pressure: str
    layer: str
    requires: tuple[str, ...]
    recurs: tuple[str, ...]
    references: tuple[Citation, ...]
    place: Place

    @property
    def stamp(self) -> str:
        """The name of its texts: what a translation of it is ``of``."""
        return english_stamp((self.title, self.summary))


@dataclass(frozen=True, slots=True)
class Reference:
    """A work that notes cite."""

    key: str
    title: str
    authors: str
    year: int
    url: str
    sections: Mapping[str, str]
    """Section number to its title; a title may be empty where nobody checked it."""
    place: Place


def parse_annotation(
    document: YamlFile, index: int, upstream: str, *, mine: bool = False
) -> Annotation:
    """Return an entry that fits its schema as an annotation.

    Raises:
        ContentError: an anchor that contradicts itself.
    """
    entry = document.value[index]
    given = {name: entry[name].strip() for name in TEXT_FIELDS if name in entry}
    return Annotation(
        id=entry["id"],
        upstream=upstream,
        anchor=_anchor(entry["at"], document, (index, "at")),
        kind=entry["kind"],
        title=entry["title"],
        place=_place(document, (index,)),
        references=_citations(entry),
        concepts=tuple(entry["concepts"]),
        mine=mine,
        **given,
    )


_NEEDED: dict[str, Any] = {
    "id": "?",
    "at": {"file": "?", "symbol": "?"},
    "kind": "note",
    "title": "",
    "concepts": [],
}


def sound_part(document: YamlFile, index: int) -> YamlFile:
    """Return the document with only what fits its schema of one note.

    What a note cannot be without has a stand-in.
    """
    misfits = {path[:2] for path in document.misfits if path[:1] == (index,)}
    if not misfits:
        return document
    entry = document.value[index]
    fits = {key: entry[key] for key in entry if (index, key) not in misfits}
    value = [*document.value]
    value[index] = {**_NEEDED, **fits}
    return replace(document, value=value)


def parse_mirror(document: YamlFile) -> Mirror:
    """Return the mirror of a file that fits its schema.

    Raises:
        ContentError: every anchor of the file that contradicts itself.
    """
    faults: list[Fault] = []
    value = document.value
    sections = []
    for index, entry in enumerate(value["sections"]):
        path: Path = ("sections", index)
        anchors = []
        for number, at in enumerate(entry.get("mini", ())):
            where = (*path, "mini", number)
            try:
                anchor = _anchor(at, document, where)
                anchors.append((anchor, _place(document, where)))
            except ContentError as error:
                faults += error.faults
        sections.append(
            MirrorSection(
                title=entry["title"],
                relation=entry["relation"],
                upstream=tuple(entry["upstream"]),
                mini=tuple(anchor for anchor, _ in anchors),
                places=tuple(place for _, place in anchors),
                leaves_out=tuple(
                    LeftOut(**item) for item in entry.get("leaves_out", ())
                ),
                why=entry.get("why", "").strip(),
                events=_events(entry),
                place=_place(document, path),
                differences=_differences(document, index, faults),
            )
        )
    if faults:
        raise ContentError(faults)
    return Mirror(
        value["id"],
        value["title"],
        value["idea"].strip(),
        tuple(value.get("concepts", ())),
        tuple(sections),
        _place(document, ()),
    )


def parse_comparison(document: YamlFile, index: int) -> Comparison:
    """Return an entry that fits its schema as a comparison."""
    return Comparison(**document.value[index], place=_place(document, (index,)))


def parse_concept(document: YamlFile, index: int) -> Concept:
    """Return an entry that fits its schema as a concept."""
    entry = document.value[index]
    return Concept(
        entry["id"],
        entry["title"],
        entry["summary"].strip(),
        entry["pressure"],
        entry["layer"],
        tuple(entry.get("requires", ())),
        tuple(entry.get("recurs", ())),
        _citations(entry),
        _place(document, (index,)),
    )


def parse_reference(document: YamlFile, index: int) -> Reference:
    """Return an entry that fits its schema as a reference."""
    return Reference(**document.value[index], place=_place(document, (index,)))


def _events(entry: Mapping[str, Any]) -> tuple[Event, ...]:
    """Return the events of a section, one for each comparison that they name."""
    return tuple(
        Event(name, item["phase"], item["op"], item.get("group", ""))
        for item in entry.get("events", ())
        for name in item["comparisons"]
    )


def _differences(
    document: YamlFile, section: int, faults: list[Fault]
) -> tuple[Difference, ...]:
    """Return the same for the differences of a section."""
    found = []
    entries = document.value["sections"][section].get("differences", ())
    for index, entry in enumerate(entries):
        where: Path = ("sections", section, "differences", index)
        for number, event in enumerate(entry.get("events", [entry])):
            path = (*where, "events", number) if "events" in entry else where
            text = str(event["at_most"])
            try:
                at_most = Count.parse(text)
            except ValueError as error:
                what = "wrong value for 'at_most'"
                faults.append(document.fault(path, what, f"'{text}'", str(error)))
                continue
            rest = {name: event.get(name, "") for name in ("phase", "op", "group")}
            found += [
                Difference(name, entry["what"], at_most, entry["why"].strip(), **rest)
                for name in entry["comparisons"]
            ]
    return tuple(found)


def _citations(entry: Mapping[str, Any]) -> tuple[Citation, ...]:
    return tuple(Citation(**item) for item in entry.get("references", ()))


def _place(document: YamlFile, path: Path) -> Place:
    return Place(document.file, *document.mark(path))


def _anchor(value: Mapping[str, Any], document: YamlFile, path: Path) -> Anchor:
    try:
        return Anchor.parse(value)
    except AnchorError as error:
        raise ContentError([document.fault(path, f"anchor: {error}")]) from None
