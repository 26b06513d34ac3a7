"""From the bytes of a book's files to a Book, with every fault of every file at once.

Each file is held against its schema, then all of them against each other: ids,
references, sections, concepts, cycles. Nothing here touches a disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Generic, Protocol, TypeVar

from msgspec.structs import replace

from readerkit.content.annotations import (
    ANNOTATIONS,
    COMPARISONS,
    CONCEPTS,
    REFERENCES,
    Annotation,
    Citation,
    CitedWork,
    ComparisonName,
    Concept,
)
from readerkit.content.book import Book
from readerkit.content.claims import Claimed
from readerkit.content.kind import Document, E, Kind, Place
from readerkit.content.kinds import BY_NAME, UPSTREAMS, kind_of
from readerkit.content.mirrors import MIRROR, Mirror
from readerkit.content.translations import (
    CONCEPT_TRANSLATION,
    NOTE_TRANSLATION,
    Translation,
)
from readerkit.content.yaml_document import Path
from readerkit.errors import ContentError, ContentFault
from readerkit.upstreams import Lock, Upstream
from readerkit.wording.meant_name import near_names


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


class Read(Protocol):
    """Turns the bytes of a file into a document held against the model of its kind."""

    def __call__(self, file: BookFile, kind: Kind[E], /) -> Document[E]:
        """Return the document; ContentError for a file that is no YAML."""


def read_strictly(file: BookFile, kind: Kind[E]) -> Document[E]:
    """Return a file's document, parsed and held against its model.

    Raises:
        ContentError: a file that is no YAML.
    """
    from readerkit.content.read import read_document  # brings parser and validator

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
) -> tuple[Book, list[ContentFault]]:
    """Return every fault of every file, and what can be known of the book beside them.

    With faults the book is good for finding more of them, not for showing: its entries
    may name what is not there.
    """
    reader = _Reader(read_file)
    for file in files:
        reader.read(file)
    reader.check_links()
    return reader.book(), reader.faults


Written = TypeVar("Written", Annotation, ComparisonName, Mirror, Concept, CitedWork)


@dataclass(frozen=True, slots=True)
class _Written(Generic[Written]):
    """An entry, and where it is written."""

    entry: Written
    document: Document[Written]
    path: Path


@dataclass(frozen=True, slots=True)
class _Translated:
    """A sidecar: of which kind, and in which language."""

    kind: Kind[Any]
    language: str
    document: Document[Translation]


@dataclass(slots=True)
class _Reader:
    read_file: Read
    faults: list[ContentFault] = field(default_factory=list)
    upstreams: dict[str, Upstream] = field(default_factory=dict)
    locks: dict[str, Lock] = field(default_factory=dict)
    lock_files: dict[str, str] = field(default_factory=dict)
    """What messages call the first file of each lock."""
    annotations: list[_Written[Annotation]] = field(default_factory=list)
    unplaced: list[_Written[Annotation]] = field(default_factory=list)
    """Notes whose anchor is none: what they name is checked all the same."""
    mirrors: list[_Written[Mirror]] = field(default_factory=list)
    concepts: list[_Written[Concept]] = field(default_factory=list)
    references: list[_Written[CitedWork]] = field(default_factory=list)
    comparisons: list[_Written[ComparisonName]] = field(default_factory=list)
    translated: list[_Translated] = field(default_factory=list)
    unread: set[Kind[Any]] = field(default_factory=set)
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
            self._translations(NOTE_TRANSLATION),
            self._translations(CONCEPT_TRANSLATION),
            {c.entry.name: c.entry for c in self.comparisons},
        )

    def _translations(self, kind: Kind[Any]) -> dict[str, dict[str, Translation]]:
        """Return one kind of translations: language to id."""
        found: dict[str, dict[str, Translation]] = {}
        for each in self.translated:
            if each.kind is kind:
                entries = each.document.entries.items()
                texts = {str(key): entry for (key,), entry in entries}
                found.setdefault(each.language, {}).update(texts)
        return found

    def read(self, file: BookFile) -> None:
        """Read one file; what is wrong with it goes to ``faults``."""
        try:
            if file.problem:
                if not file.path.endswith(".lock"):
                    self.unread.add(_kind(file))
                raise ContentError([ContentFault(file.name, 1, 1, *_unreadable(file))])
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
        self.refused |= document.refused
        if document.is_broken:
            self.unread.add(kind)
        elif kind in (NOTE_TRANSLATION, CONCEPT_TRANSLATION):
            language = file.path.split(".")[-2]
            self.translated.append(_Translated(kind, language, document))
        else:
            for path, entry in document.entries.items():
                self._take(file, kind, _Written(entry, document, path))
                for claimed in _claimed(entry):
                    self.faults += claimed.claim_faults()
            for path, part in document.partial.items():
                self._take(file, kind, _Written(part, document, path))

    def _take(self, file: BookFile, kind: Kind[Any], written: _Written[Any]) -> None:
        if kind is ANNOTATIONS:
            self._take_note(file, written)
        elif kind is CONCEPTS:
            self.concepts.append(written)
        elif kind is COMPARISONS:
            self.comparisons.append(written)
        elif kind is REFERENCES:
            self.references.append(written)
        elif kind is MIRROR:
            self.mirrors.append(written)
        else:
            self._take_upstream(written.entry, written)

    def _take_note(self, file: BookFile, written: _Written[Annotation]) -> None:
        upstream = file.path.split("/")[1]
        note = replace(written.entry, upstream=upstream, mine=file.mine)
        is_unplaced = (*written.path, "at") in written.document.stand_ins
        notes = self.unplaced if is_unplaced else self.annotations
        notes.append(_Written(note, written.document, written.path))

    def _take_upstream(self, upstream: Upstream, written: _Written[Any]) -> None:
        if upstream.name in self.upstreams:
            what, got = "a duplicate upstream", f"'{upstream.name}'"
            fault = written.document.fault(written.path, what, got, "each once")
            self.faults.append(fault)
        else:
            self.upstreams[upstream.name] = upstream

    # --- links between files ---

    def check_links(self) -> None:
        """Check what one file alone cannot tell: ids, references, concepts, cycles."""
        self._check_unique((a.entry.id, a.entry.place) for a in self.annotations)
        self._check_unique((m.entry.id, m.entry.place) for m in self.mirrors)
        self._check_unique((c.entry.id, c.entry.place) for c in self.concepts)
        self._check_unique((r.entry.key, r.entry.place) for r in self.references)
        self._check_unique((c.entry.name, c.entry.place) for c in self.comparisons)
        concepts = _Names("concept", CONCEPTS, {c.entry.id for c in self.concepts})
        works = _Names("reference", REFERENCES, {r.entry.key for r in self.references})
        notes = _Names(
            "annotation", ANNOTATIONS, {a.entry.id for a in self.annotations}
        )
        compared = _Names(
            "comparison", COMPARISONS, {c.entry.name for c in self.comparisons}
        )
        for note in (*self.annotations, *self.unplaced):
            self._check_upstream(note.entry)
            self._check_names(note, ("concepts",), note.entry.concepts, concepts)
            self._check_citations(note, note.entry.references, works)
        for concept in self.concepts:
            self._check_names(concept, ("requires",), concept.entry.requires, concepts)
            self._check_names(concept, ("recurs",), concept.entry.recurs, concepts)
            self._check_citations(concept, concept.entry.references, works)
        for mirror in self.mirrors:
            self._check_names(mirror, ("concepts",), mirror.entry.concepts, concepts)
            for index, section in enumerate(mirror.entry.sections):
                at: Path = ("sections", index)
                self._check_names(mirror, (*at, "upstream"), section.upstream, notes)
                for key in ("events", "differences"):
                    for number, entry in enumerate(getattr(section, key)):
                        path = (*at, key, number, "comparisons")
                        self._check_names(mirror, path, entry.comparisons, compared)
            self._check_minis(mirror.entry)
        self._check_locks()
        self._check_translations(NOTE_TRANSLATION, notes)
        self._check_translations(CONCEPT_TRANSLATION, concepts)
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
        if annotation.upstream not in known and UPSTREAMS not in self.unread:
            got = f"folder '{annotation.upstream}'"
            expected = "one of " + ", ".join(self.upstreams)
            self.faults.append(
                annotation.place.fault("unknown upstream", got, expected)
            )

        for each in annotation.also if UPSTREAMS not in self.unread else ():
            path = each.anchor.file
            if not any(u.includes(path) for u in self.upstreams.values()):
                expected = "a file of " + ", ".join(self.upstreams)
                what = "lines of a file that no upstream includes"
                self.faults.append(each.place.fault(what, f"'{path}'", expected))

    def _is_known(self, name: str, known: _Names) -> bool:
        is_unsure = known.kind in self.unread or name in self.refused
        return is_unsure or name in known.names

    def _check_names(
        self,
        written: _Written[Written],
        below: Path,
        names: Sequence[str],
        known: _Names,
    ) -> None:
        """Check a list of names, which stands at ``below`` in an entry."""
        for index, name in enumerate(names):
            if not self._is_known(name, known):
                path = (*written.path, *below, index)
                fault = written.document.fault(path, *known.unknown(name))
                self.faults.append(fault)

    def _check_minis(self, mirror: Mirror) -> None:
        """Check that some folder of the book holds each mini."""
        folders = [each for each in self.upstreams.values() if each.folder]
        if UPSTREAMS in self.unread:
            return
        expected = "a file of " + ", ".join(each.name for each in folders)
        for section in mirror.sections:
            for anchor, place in zip(section.mini, section.places, strict=True):
                if not any(each.includes(anchor.file) for each in folders):
                    what = "a mini that no folder of upstreams.yaml includes"
                    got = f"'{anchor.file}'"
                    wanted = expected if folders else "an upstream with a folder"
                    self.faults.append(place.fault(what, got, wanted))

    def _check_locks(self) -> None:
        known = {*self.upstreams, *self.refused}
        for name, file in self.lock_files.items():
            if name not in known and UPSTREAMS not in self.unread:
                got, expected = f"'{name}'", "one of " + ", ".join(self.upstreams)
                fault = ContentFault(file, 1, 1, "a lock of no upstream", got, expected)
                self.faults.append(fault)

    def _check_translations(self, kind: Kind[Any], known: _Names) -> None:
        first: dict[tuple[str, str], tuple[Document[Translation], Path]] = {}
        for each in self.translated:
            for path in each.document.entries if each.kind is kind else ():
                key = str(path[0])
                if not self._is_known(key, known):
                    fault = each.document.key_fault(path, *known.unknown(key))
                    self.faults.append(fault)
                before, at = first.setdefault(
                    (each.language, key), (each.document, path)
                )
                if before is not each.document:
                    line = before.key_fault(at, "", "", "").line
                    got = f"'{key}', first at {before.file}:{line}"
                    what = "a duplicate translation"
                    fault = each.document.key_fault(path, what, got, "each id once")
                    self.faults.append(fault)

    def _check_citations(
        self,
        written: _Written[Written],
        citations: Sequence[Citation],
        known: _Names,
    ) -> None:
        works = {work.entry.key: work.entry for work in self.references}
        document = written.document
        for index, citation in enumerate(citations):
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
    kind: Kind[Any]
    """The kind of file that gives these names."""
    names: Set[str]

    def unknown(self, name: str) -> tuple[str, str, str]:
        """Return a fault's what, got and expected for a name that is none of these."""
        near = near_names(name, self.names)
        hint = f" (did you mean '{near[0]}'?)" if near else ""
        return f"unknown {self.what}", f"'{name}'{hint}", f"a known {self.what}"


def _claimed(entry: object) -> Iterable[Claimed]:
    """Return the parts of an entry that may carry claims."""
    if isinstance(entry, Mirror):
        return entry.claimed()
    return (entry,) if isinstance(entry, Claimed) else ()


def _unreadable(file: BookFile) -> tuple[str, str, str]:
    """Return a fault's what, got and expected for a file that cannot be read."""
    return "cannot be read", file.problem, "a regular file that may be read"


def _kind(file: BookFile) -> Kind[Any]:
    """Tell what a file is from where it stands."""
    kind = kind_of(file.path)
    if kind is None:
        names = ", ".join(BY_NAME)
        expected = f"{names}, <upstream>/<topic>.yaml or mirrors/<idea>.yaml"
        fault = ContentFault(file.name, 1, 1, "a file nobody reads", "", expected)
        raise ContentError([fault])
    return kind
