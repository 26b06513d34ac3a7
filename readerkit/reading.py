"""From the bytes of a book's files to a Book, with every fault of every file at once.

Each file is held against its schema, then all of them against each other: ids,
references, sections, concepts, cycles. Nothing here touches a disk.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from readerkit.annotations import (
    Annotation,
    Citation,
    Concept,
    Mirror,
    Place,
    Reference,
    parse_annotation,
    parse_concept,
    parse_mirror,
    parse_reference,
)
from readerkit.book import Book
from readerkit.document import Kind, YamlFile
from readerkit.errors import ContentError, Fault
from readerkit.upstreams import Lock, Upstream


@dataclass(frozen=True, slots=True)
class BookFile:
    """One file of a book, as it was read."""

    path: str
    """Below the book's root: ``annotations/megatron/tensor_parallel.yaml``."""
    data: bytes
    shown: str = ""
    """How messages name it; the path where empty."""
    mine: bool = False
    """Whether it is part of the reader's overlay."""

    @property
    def name(self) -> str:
        """The name for messages."""
        return self.shown or self.path


Read = Callable[[BookFile, Kind], YamlFile]
"""Turns the bytes of a file into a document held against the schema of its kind."""


def read_strictly(file: BookFile, kind: Kind) -> YamlFile:
    """Return a file's document, parsed and held against its schema.

    Raises:
        ContentError: a file that is no YAML.
    """
    from readerkit.schema import read_document  # brings the parser and the validator

    return read_document(file.data, file.name, kind)


def parse_book(files: Iterable[BookFile], read_file: Read = read_strictly) -> Book:
    """Return the book that ``files`` hold.

    Raises:
        ContentError: every fault of every file.
    """
    reader = _Reader(read_file)
    for file in files:
        reader.read(file)
    reader.check_links()
    if reader.faults:
        raise ContentError(reader.faults)
    return reader.book()


@dataclass(slots=True)
class _Reader:
    read_file: Read
    faults: list[Fault] = field(default_factory=list)
    upstreams: dict[str, Upstream] = field(default_factory=dict)
    locks: dict[str, Lock] = field(default_factory=dict)
    annotations: list[Annotation] = field(default_factory=list)
    mirrors: list[Mirror] = field(default_factory=list)
    concepts: list[Concept] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    translated: list[tuple[str, YamlFile]] = field(default_factory=list)
    unread: set[Kind] = field(default_factory=set)
    """Kinds of files of which one could not be read: what it names is not known."""
    refused: set[str] = field(default_factory=set)
    """Ids of entries with faults: they exist, but are in none of the lists above."""

    def book(self) -> Book:
        translations: dict[str, dict[str, dict[str, str]]] = {}
        for language, document in self.translated:
            translations.setdefault(language, {}).update(document.value)
        return Book(
            self.upstreams,
            self.locks,
            {entry.id: entry for entry in self.annotations},
            {entry.id: entry for entry in self.mirrors},
            {entry.id: entry for entry in self.concepts},
            {entry.key: entry for entry in self.references},
            translations,
        )

    def read(self, file: BookFile) -> None:
        """Read one file; what is wrong with it goes to ``faults``."""
        try:
            if file.path.endswith(".lock"):
                self._read_lock(file)
            else:
                self._read_yaml(file)
        except ContentError as error:
            self.faults += error.faults

    def _read_lock(self, file: BookFile) -> None:
        name = file.path.rpartition("/")[2].removesuffix(".lock")
        text = file.data.decode("utf-8", "replace")
        lock = Lock.parse(text, file.name)
        known = self.locks.get(name)
        if known is not None:  # an overlay adds its anchors to the book's
            lock = known.with_anchors({**known.anchors, **lock.anchors})
        self.locks[name] = lock

    def _read_yaml(self, file: BookFile) -> None:
        kind = _kind(file)
        try:
            document = self.read_file(file, kind)
        except ContentError:
            self.unread.add(kind)
            raise
        self.faults += document.faults
        if None in document.broken:
            self.unread.add(kind)
        elif kind == "mirror":
            if not document.broken:
                self.mirrors.append(parse_mirror(document))
        elif kind == "translation":
            texts = (document.value or {}).items()
            sound = {key: text for key, text in texts if key not in document.broken}
            language = file.path.split(".")[-2]
            self.translated.append((language, replace(document, value=sound)))
        else:
            for index, entry in enumerate(document.value or ()):
                if index in document.broken:
                    self.refused |= _names(entry)
                else:
                    self._read_entry(file, kind, document, index)

    def _read_entry(
        self, file: BookFile, kind: Kind, document: YamlFile, index: int
    ) -> None:
        entry = document.value[index]
        try:
            if kind == "annotations":
                upstream = file.path.split("/")[1]
                self.annotations.append(
                    parse_annotation(document, index, upstream, mine=file.mine)
                )
            elif kind == "concepts":
                self.concepts.append(parse_concept(document, index))
            elif kind == "references":
                self.references.append(parse_reference(document, index))
            elif entry["name"] in self.upstreams:
                got = f"'{entry['name']}'"
                fault = document.fault(
                    (index,), "a duplicate upstream", got, "each once"
                )
                self.faults.append(fault)
            else:
                self.upstreams[entry["name"]] = Upstream.parse(entry)
        except ContentError as error:
            self.faults += error.faults
            self.refused |= _names(entry)

    # --- links between files ---

    def check_links(self) -> None:
        """Check what one file alone cannot tell: ids, references, concepts, cycles."""
        self._check_unique((a.id, a.place) for a in self.annotations)
        self._check_unique((m.id, m.place) for m in self.mirrors)
        self._check_unique((c.id, c.place) for c in self.concepts)
        self._check_unique((r.key, r.place) for r in self.references)
        concepts = _Names("concept", "concepts", {c.id for c in self.concepts})
        works = _Names("reference", "references", {r.key for r in self.references})
        notes = _Names("annotation", "annotations", {a.id for a in self.annotations})
        for annotation in self.annotations:
            self._check_upstream(annotation)
            self._check_names(annotation.concepts, concepts, annotation.place)
            self._check_citations(annotation.references, works, annotation.place)
        for concept in self.concepts:
            self._check_names(concept.requires, concepts, concept.place)
            self._check_names(concept.recurs, concepts, concept.place)
            self._check_citations(concept.references, works, concept.place)
        for mirror in self.mirrors:
            self._check_names(mirror.concepts, concepts, mirror.place)
            for section in mirror.sections:
                self._check_names(section.upstream, notes, section.place)
        self._check_translations(notes)
        self._check_cycles()

    def _check_unique(self, named: Iterable[tuple[str, Place]]) -> None:
        first: dict[str, Place] = {}
        for name, place in named:
            if name in first:
                known = first[name]
                got = f"'{name}', first at {known.file}:{known.line}"
                self.faults.append(place.fault("a duplicate id", got, "each id once"))
            first.setdefault(name, place)

    def _check_upstream(self, annotation: Annotation) -> None:
        known = {*self.upstreams, *self.refused}
        if annotation.upstream not in known and "upstreams" not in self.unread:
            got = f"folder '{annotation.upstream}'"
            expected = "one of " + ", ".join(self.upstreams)
            self.faults.append(
                annotation.place.fault("unknown upstream", got, expected)
            )

    def _check_names(self, names: Iterable[str], known: _Names, place: Place) -> None:
        if known.kind in self.unread:
            return
        for name in names:
            if name not in known.names and name not in self.refused:
                got = f"'{name}'{_hint(name, known.names)}"
                expected = f"a known {known.what}"
                self.faults.append(place.fault(f"unknown {known.what}", got, expected))

    def _check_translations(self, notes: _Names) -> None:
        first: dict[tuple[str, str], Place] = {}
        for language, document in self.translated:
            for key in document.value:
                place = Place(document.file, *document.key_mark((key,)))
                self._check_names([key], notes, place)
                known = first.setdefault((language, key), place)
                if known is not place:
                    got = f"'{key}', first at {known.file}:{known.line}"
                    fault = place.fault("a duplicate translation", got, "each id once")
                    self.faults.append(fault)

    def _check_citations(
        self, citations: Iterable[Citation], known: _Names, place: Place
    ) -> None:
        works = {work.key: work for work in self.references}
        for citation in citations:
            self._check_names([citation.key], known, place)
            work = works.get(citation.key)
            if work and citation.section and citation.section not in work.sections:
                got = f"'{citation.section}' of {citation.key}"
                expected = (
                    f"one of {', '.join(work.sections)} (add it to references.yaml)"
                )
                self.faults.append(place.fault("unknown section", got, expected))

    def _check_cycles(self) -> None:
        graph = {concept.id: concept.requires for concept in self.concepts}
        while True:
            try:
                TopologicalSorter(graph).prepare()
                return
            except CycleError as error:
                first, *_ = cycle = error.args[1]
            place = next(c.place for c in self.concepts if c.id == first)
            got = " -> ".join(reversed(cycle))
            fault = place.fault("concepts that require each other", got, "no cycle")
            self.faults.append(fault)
            graph[first] = ()  # cut here, to find the next one


@dataclass(frozen=True, slots=True)
class _Names:
    """The names that something may be called by."""

    what: str
    kind: Kind
    """The kind of file that gives these names."""
    names: Set[str]


def _names(entry: Any) -> set[str]:
    """Return what an entry with faults is called, as far as it says so."""
    given = entry if isinstance(entry, dict) else {}
    names = (given.get(key) for key in ("id", "key", "name"))
    return {name for name in names if isinstance(name, str)}


def _kind(file: BookFile) -> Kind:
    """Tell what a file is from where it stands."""
    parts = file.path.split("/")
    if parts[-1].count(".") > 1:
        return "translation"
    if len(parts) == 3:
        return "mirror" if parts[1] == "mirrors" else "annotations"
    kinds: dict[str, Kind] = {
        "concepts.yaml": "concepts",
        "references.yaml": "references",
        "upstreams.yaml": "upstreams",
    }
    if parts[-1] not in kinds:
        expected = f"{', '.join(kinds)}, <upstream>/<topic>.yaml or mirrors/<idea>.yaml"
        raise ContentError(
            [Fault(file.name, 1, 1, "a file nobody reads", "", expected)]
        )
    return kinds[parts[-1]]


def _hint(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""
