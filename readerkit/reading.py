"""From the bytes of a book's files to a Book, with every fault of every file at once.

Each file is held against its schema, then all of them against each other: ids,
references, sections, concepts, cycles. Nothing here touches a disk.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, Generic, TypeVar

from readerkit.annotations import (
    Annotation,
    Comparison,
    Concept,
    Mirror,
    Place,
    Reference,
    parse_annotation,
    parse_comparison,
    parse_concept,
    parse_mirror,
    parse_reference,
    sound_part,
)
from readerkit.book import Book
from readerkit.document import Kind, Path, YamlFile
from readerkit.errors import ContentError, Fault
from readerkit.translations import Translation
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
    problem: str = ""
    """Why it could not be read: a folder, a named pipe, no permission."""

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
    book, faults = read_book(files, read_file)
    if faults:
        raise ContentError(faults)
    return book


def read_book(
    files: Iterable[BookFile], read_file: Read = read_strictly
) -> tuple[Book, list[Fault]]:
    """Return every fault of every file, and what can be known of the book beside them.

    With faults the book is good for finding more of them, not for showing: its entries
    may name what is not there.
    """
    reader = _Reader(read_file)
    for file in files:
        reader.read(file)
    reader.check_links()
    return reader.book(), reader.faults


Entry = TypeVar("Entry", Annotation, Comparison, Mirror, Concept, Reference)


@dataclass(frozen=True, slots=True)
class _Written(Generic[Entry]):
    """An entry, and where it is written."""

    entry: Entry
    document: YamlFile
    path: Path


@dataclass(frozen=True, slots=True)
class _Translated:
    """A sidecar: what its ids name, and in which language."""

    kind: Kind
    language: str
    document: YamlFile


@dataclass(slots=True)
class _Reader:
    read_file: Read
    faults: list[Fault] = field(default_factory=list)
    upstreams: dict[str, Upstream] = field(default_factory=dict)
    locks: dict[str, Lock] = field(default_factory=dict)
    lock_files: dict[str, str] = field(default_factory=dict)
    """What messages call the first file of each lock."""
    annotations: list[_Written[Annotation]] = field(default_factory=list)
    unplaced: list[_Written[Annotation]] = field(default_factory=list)
    """Notes whose anchor is none: what they name is checked all the same."""
    mirrors: list[_Written[Mirror]] = field(default_factory=list)
    concepts: list[_Written[Concept]] = field(default_factory=list)
    references: list[_Written[Reference]] = field(default_factory=list)
    comparisons: list[_Written[Comparison]] = field(default_factory=list)
    translated: list[_Translated] = field(default_factory=list)
    unread: set[Kind] = field(default_factory=set)
    """Kinds of files of which one could not be read: what it names is not known."""
    refused: set[str] = field(default_factory=set)
    """Ids of entries with faults: they exist, whatever of them could be read."""

    def book(self) -> Book:
        return Book(
            self.upstreams,
            self.locks,
            {a.entry.id: a.entry for a in self.annotations},
            {m.entry.id: m.entry for m in self.mirrors},
            {c.entry.id: c.entry for c in self.concepts},
            {r.entry.key: r.entry for r in self.references},
            self._translations("translation"),
            self._translations("concept-translation"),
            {c.entry.name: c.entry for c in self.comparisons},
        )

    def _translations(self, kind: Kind) -> dict[str, dict[str, Translation]]:
        """Return one kind of translations: language to id."""
        found: dict[str, dict[str, Translation]] = {}
        for each in self.translated:
            if each.kind == kind:
                entries = each.document.value.items()
                parsed = {name: Translation.parse(entry) for name, entry in entries}
                found.setdefault(each.language, {}).update(parsed)
        return found

    def read(self, file: BookFile) -> None:
        """Read one file; what is wrong with it goes to ``faults``."""
        try:
            if file.problem:
                if not file.path.endswith(".lock"):
                    self.unread.add(_kind(file))
                raise ContentError([Fault(file.name, 1, 1, *_unreadable(file))])
            if file.path.endswith(".lock"):
                self._read_lock(file)
            else:
                self._read_yaml(file)
        except ContentError as error:
            self.faults += error.faults

    def _read_lock(self, file: BookFile) -> None:
        name = file.path.rpartition("/")[2].removesuffix(".lock")
        self.lock_files.setdefault(name, file.name)
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
                self.mirrors.append(_Written(parse_mirror(document), document, ()))
        elif kind in ("translation", "concept-translation"):
            texts = (document.value or {}).items()
            sound = {key: text for key, text in texts if key not in document.broken}
            language = file.path.split(".")[-2]
            document = replace(document, value=sound)
            self.translated.append(_Translated(kind, language, document))
        else:
            for index, entry in enumerate(document.value or ()):
                if index in document.broken:
                    self.refused |= _names(entry)
                if kind == "annotations" and isinstance(entry, dict):
                    self._read_note(file, document, index)
                elif index not in document.broken:
                    self._read_entry(file, kind, document, index)

    def _read_entry(
        self, file: BookFile, kind: Kind, document: YamlFile, index: int
    ) -> None:
        entry = document.value[index]
        try:
            if kind == "concepts":
                concept = parse_concept(document, index)
                self.concepts.append(_Written(concept, document, (index,)))
            elif kind == "comparisons":
                comparison = parse_comparison(document, index)
                self.comparisons.append(_Written(comparison, document, (index,)))
            elif kind == "references":
                work = parse_reference(document, index)
                self.references.append(_Written(work, document, (index,)))
            elif entry["name"] in self.upstreams:
                got = f"'{entry['name']}'"
                fault = document.fault(
                    (index,), "a duplicate upstream", got, "each once"
                )
                self.faults.append(fault)
            else:
                self.upstreams[entry["name"]] = _upstream(document, index)
        except ContentError as error:
            self.faults += error.faults
            self.refused |= _names(entry)

    def _read_note(self, file: BookFile, document: YamlFile, index: int) -> None:
        """Read a note; of one with faults what fits, so that all of them are told."""
        entry, upstream = document.value[index], file.path.split("/")[1]
        part = sound_part(document, index)
        try:
            note = parse_annotation(part, index, upstream, mine=file.mine)
        except ContentError as error:
            self.faults += error.faults
            self.refused |= _names(entry)
            document.misfits.add((index, "at"))
            part = sound_part(document, index)
            note = parse_annotation(part, index, upstream, mine=file.mine)
        misfits = {path[:2] for path in document.misfits}
        stands = "at" in entry and (index, "at") not in misfits
        notes = self.annotations if stands else self.unplaced
        notes.append(_Written(note, document, (index,)))

    # --- links between files ---

    def check_links(self) -> None:
        """Check what one file alone cannot tell: ids, references, concepts, cycles."""
        self._check_unique((a.entry.id, a.entry.place) for a in self.annotations)
        self._check_unique((m.entry.id, m.entry.place) for m in self.mirrors)
        self._check_unique((c.entry.id, c.entry.place) for c in self.concepts)
        self._check_unique((r.entry.key, r.entry.place) for r in self.references)
        self._check_unique((c.entry.name, c.entry.place) for c in self.comparisons)
        concepts = _Names("concept", "concepts", {c.entry.id for c in self.concepts})
        works = _Names(
            "reference", "references", {r.entry.key for r in self.references}
        )
        notes = _Names(
            "annotation", "annotations", {a.entry.id for a in self.annotations}
        )
        comparisons = _Names(
            "comparison", "comparisons", {c.entry.name for c in self.comparisons}
        )
        for annotation in (*self.annotations, *self.unplaced):
            self._check_upstream(annotation.entry)
            self._check_names(annotation, ("concepts",), concepts)
            self._check_citations(annotation, works)
        for concept in self.concepts:
            self._check_names(concept, ("requires",), concepts)
            self._check_names(concept, ("recurs",), concepts)
            self._check_citations(concept, works)
        for mirror in self.mirrors:
            self._check_names(mirror, ("concepts",), concepts)
            for index in range(len(mirror.entry.sections)):
                self._check_names(mirror, ("sections", index, "upstream"), notes)
                for key in ("events", "differences"):
                    self._check_compared(mirror, ("sections", index, key), comparisons)
            self._check_minis(mirror)
        self._check_locks()
        self._check_translations("translation", notes)
        self._check_translations("concept-translation", concepts)
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

    def _is_known(self, name: str, known: _Names) -> bool:
        is_unsure = known.kind in self.unread or name in self.refused
        return is_unsure or name in known.names

    def _check_names(
        self, written: _Written[Entry], below: Path, known: _Names
    ) -> None:
        """Check a list of names, which stands at ``below`` in an entry."""
        path: Path = (*written.path, *below)
        for index, name in enumerate(written.document.find(path) or ()):
            if not self._is_known(name, known):
                problem = known.unknown(name)
                self.faults.append(written.document.fault((*path, index), *problem))

    def _check_compared(
        self, mirror: _Written[Mirror], below: Path, known: _Names
    ) -> None:
        """Check the comparisons that each entry of a list names."""
        for index in range(len(mirror.document.find(below) or ())):
            self._check_names(mirror, (*below, index, "comparisons"), known)

    def _check_minis(self, mirror: _Written[Mirror]) -> None:
        """Check that some folder of the book holds each mini."""
        folders = [each for each in self.upstreams.values() if each.folder]
        if "upstreams" in self.unread:
            return
        expected = "a file of " + ", ".join(each.name for each in folders)
        for section in mirror.entry.sections:
            for anchor, place in zip(section.mini, section.places, strict=True):
                if not any(each.includes(anchor.file) for each in folders):
                    what = "a mini that no folder of upstreams.yaml includes"
                    got = f"'{anchor.file}'"
                    wanted = expected if folders else "an upstream with a folder"
                    self.faults.append(place.fault(what, got, wanted))

    def _check_locks(self) -> None:
        known = {*self.upstreams, *self.refused}
        for name, file in self.lock_files.items():
            if name not in known and "upstreams" not in self.unread:
                got, expected = f"'{name}'", "one of " + ", ".join(self.upstreams)
                fault = Fault(file, 1, 1, "a lock of no upstream", got, expected)
                self.faults.append(fault)

    def _check_translations(self, kind: Kind, known: _Names) -> None:
        first: dict[tuple[str, str], Place] = {}
        for each in self.translated:
            for key in each.document.value if each.kind == kind else ():
                place = Place(each.document.file, *each.document.key_mark((key,)))
                if not self._is_known(key, known):
                    self.faults.append(place.fault(*known.unknown(key)))
                before = first.setdefault((each.language, key), place)
                if before is not place:
                    got = f"'{key}', first at {before.file}:{before.line}"
                    fault = place.fault("a duplicate translation", got, "each id once")
                    self.faults.append(fault)

    def _check_citations(
        self, written: _Written[Annotation] | _Written[Concept], known: _Names
    ) -> None:
        works = {work.entry.key: work.entry for work in self.references}
        document = written.document
        for index, citation in enumerate(written.entry.references):
            at: Path = (*written.path, "references", index)
            if not self._is_known(citation.key, known):
                problem = known.unknown(citation.key)
                self.faults.append(document.fault((*at, "key"), *problem))
            work = works.get(citation.key)
            if work and citation.section and citation.section not in work.sections:
                got = f"'{citation.section}' of {citation.key}"
                expected = (
                    f"one of {', '.join(work.sections)} (add it to references.yaml)"
                )
                fault = document.fault(
                    (*at, "section"), "unknown section", got, expected
                )
                self.faults.append(fault)

    def _check_cycles(self) -> None:
        graph = {concept.entry.id: concept.entry.requires for concept in self.concepts}
        while True:
            try:
                TopologicalSorter(graph).prepare()
                return
            except CycleError as error:
                first, *_ = cycle = error.args[1]
            place = next(c.entry.place for c in self.concepts if c.entry.id == first)
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

    def unknown(self, name: str) -> tuple[str, str, str]:
        """Return a fault's what, got and expected for a name that is none of these."""
        near = difflib.get_close_matches(name, list(self.names), n=1)
        hint = f" (did you mean '{near[0]}'?)" if near else ""
        return f"unknown {self.what}", f"'{name}'{hint}", f"a known {self.what}"


def _upstream(document: YamlFile, index: int) -> Upstream:
    """Return an entry that fits its schema as an upstream.

    Raises:
        ContentError: a glob or a licence that could lead out of it.
    """
    entry = document.value[index]
    try:
        return Upstream.parse(entry)
    except ValueError as error:
        raise ContentError(
            [document.fault((index,), f"{entry['name']}: {error}")]
        ) from None


def _names(entry: Any) -> set[str]:
    """Return what an entry with faults is called, as far as it says so."""
    given = entry if isinstance(entry, dict) else {}
    names = (given.get(key) for key in ("id", "key", "name"))
    return {name for name in names if isinstance(name, str)}


def _unreadable(file: BookFile) -> tuple[str, str, str]:
    """Return a fault's what, got and expected for a file that cannot be read."""
    return "cannot be read", file.problem, "a regular file that may be read"


def _kind(file: BookFile) -> Kind:
    """Tell what a file is from where it stands."""
    _, *folders, name = file.path.split("/")
    if len(folders) == 1 and name.endswith(".yaml"):
        if name.count(".") > 1:
            return "translation"
        return "mirror" if folders == ["mirrors"] else "annotations"
    kinds: dict[str, Kind] = {
        "comparisons.yaml": "comparisons",
        "concepts.yaml": "concepts",
        "concepts.<language>.yaml": "concept-translation",
        "references.yaml": "references",
        "upstreams.yaml": "upstreams",
    }
    general = re.sub(r"^concepts\.[A-Za-z-]+\.yaml$", "concepts.<language>.yaml", name)
    if folders or general not in kinds:
        expected = f"{', '.join(kinds)}, <upstream>/<topic>.yaml or mirrors/<idea>.yaml"
        raise ContentError(
            [Fault(file.name, 1, 1, "a file nobody reads", "", expected)]
        )
    return kinds[general]
