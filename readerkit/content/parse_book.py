"""From the bytes of a book's files to a Book, with every fault of every file at once.

Each file is held against its schema, then all of them against each other: ids,
references, sections, concepts, cycles. Nothing here touches a disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgspec.structs import replace

from readerkit.content.annotations import (
    ANNOTATIONS,
    COMPARISONS,
    CONCEPTS,
    CONDITIONS,
    REFERENCES,
    UPSTREAMS,
    Annotation,
)
from readerkit.content.book import Book, Translated, WrittenBook, WrittenEntry
from readerkit.content.check_links import check_links
from readerkit.content.claims import Claimed
from readerkit.content.kind import Document, E, Kind
from readerkit.content.mirrors import MIRROR
from readerkit.content.tours import TOUR, TOUR_TRANSLATION
from readerkit.content.translations import (
    CONCEPT_TRANSLATION,
    CONDITION_TRANSLATION,
    MIRROR_TRANSLATION,
    NOTE_TRANSLATION,
)
from readerkit.errors import ContentError, ContentFault
from readerkit.upstreams import Lock, Upstream

TRANSLATIONS = (
    NOTE_TRANSLATION,
    CONCEPT_TRANSLATION,
    CONDITION_TRANSLATION,
    MIRROR_TRANSLATION,
    TOUR_TRANSLATION,
)
"""Sidecars."""
IN_FOLDER: dict[str, tuple[Kind[Any], Kind[Any]]] = {
    "mirrors": (MIRROR, MIRROR_TRANSLATION),
    "tours": (TOUR, TOUR_TRANSLATION),
}
"""What a folder that is no upstream's holds, in English and in another language."""
BY_NAME: dict[str, Kind[Any]] = {
    "comparisons.yaml": COMPARISONS,
    "concepts.yaml": CONCEPTS,
    "concepts.<language>.yaml": CONCEPT_TRANSLATION,
    "conditions.yaml": CONDITIONS,
    "conditions.<language>.yaml": CONDITION_TRANSLATION,
    "references.yaml": REFERENCES,
    "upstreams.yaml": UPSTREAMS,
}

_OF_A_LANGUAGE = re.compile(r"^(concepts|conditions)\.[A-Za-z-]+\.yaml$")


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
    from readerkit.content.validation import (
        read_document,  # brings parser and validator
    )

    return read_document(file.data, file.name, kind)


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
    return reader.book.book(), [*reader.faults, *check_links(reader.book)]


@dataclass(slots=True)
class _Reader:
    read_file: Read
    faults: list[ContentFault] = field(default_factory=list)
    book: WrittenBook = field(default_factory=WrittenBook)

    def read(self, file: BookFile) -> None:
        """Read one file; what is wrong with it goes to ``faults``."""
        try:
            if file.problem:
                if not file.path.endswith(".lock"):
                    self.book.unread.add(kind_of(file))
                raise ContentError([ContentFault(file.name, 1, 1, *_unreadable(file))])
            if file.path.endswith(".lock"):
                self._read_lock(file)
            else:
                self._read_yaml(file)
        except ContentError as error:
            self.faults += error.faults

    def _read_lock(self, file: BookFile) -> None:
        name = file.path.rpartition("/")[2].removesuffix(".lock")
        self.book.lock_files.setdefault(name, file.name)
        text = file.data.decode("utf-8", "replace")
        lock = Lock.parse(text, file.name)
        known = self.book.locks.get(name)
        if known is not None:  # an overlay adds its anchors to the book's
            lock = known.with_anchors({**known.anchors, **lock.anchors})
        self.book.locks[name] = lock

    def _read_yaml(self, file: BookFile) -> None:
        kind = kind_of(file)
        try:
            document = self.read_file(file, kind)
        except ContentError:
            self.book.unread.add(kind)
            raise
        self.faults += document.faults
        self.book.refused |= document.refused
        if document.is_broken:
            self.book.unread.add(kind)
        elif kind in TRANSLATIONS:
            language = file.path.split(".")[-2]
            self.book.translated.append(Translated(kind, language, document))
        else:
            for path, entry in document.entries.items():
                self._take(file, kind, WrittenEntry(entry, document, path))
                for claimed in entry.claimed() if isinstance(entry, Claimed) else ():
                    self.faults += claimed.claim_faults()
            for path, part in document.partial.items():
                self._take(file, kind, WrittenEntry(part, document, path))

    def _take(
        self, file: BookFile, kind: Kind[Any], written: WrittenEntry[Any]
    ) -> None:
        if kind is ANNOTATIONS:
            self._take_note(file, written)
        elif kind is UPSTREAMS:
            self._take_upstream(written.entry, written)
        else:
            self.book.entries[kind].append(written)

    def _take_note(self, file: BookFile, written: WrittenEntry[Annotation]) -> None:
        note = as_noted(written.entry, file)
        is_unplaced = (*written.path, "at") in written.document.stand_ins
        placed = self.book.entries[ANNOTATIONS]
        notes = self.book.unplaced if is_unplaced else placed
        notes.append(WrittenEntry(note, written.document, written.path))

    def _take_upstream(self, upstream: Upstream, written: WrittenEntry[Any]) -> None:
        if upstream.name in self.book.upstreams:
            what, got = "a duplicate upstream", f"'{upstream.name}'"
            fault = written.document.fault(written.path, what, got, "each once")
            self.faults.append(fault)
        else:
            self.book.upstreams[upstream.name] = upstream


def as_noted(entry: Annotation, file: BookFile) -> Annotation:
    """Return a note with what its file tells of it: the upstream, and whose it is."""
    return replace(entry, upstream=file.path.split("/")[1], mine=file.mine)


def _unreadable(file: BookFile) -> tuple[str, str, str]:
    """Return a fault's what, got and expected for a file that cannot be read."""
    return "cannot be read", file.problem, "a regular file that may be read"


def kind_of(file: BookFile) -> Kind[Any]:
    """Tell what a file is from where it stands.

    Raises:
        ContentError: a place from which nothing is read.
    """
    _, *folders, name = file.path.split("/")
    if len(folders) == 1 and name.endswith(".yaml"):
        english, other = IN_FOLDER.get(folders[0], (ANNOTATIONS, NOTE_TRANSLATION))
        return other if name.count(".") > 1 else english
    general = _OF_A_LANGUAGE.sub(r"\1.<language>.yaml", name)
    if not folders and general in BY_NAME:
        return BY_NAME[general]
    places = "<upstream>/<topic>.yaml, mirrors/<idea>.yaml or tours/<tour>.yaml"
    expected = f"{', '.join(BY_NAME)}, {places}"
    fault = ContentFault(file.name, 1, 1, "a file nobody reads", "", expected)
    raise ContentError([fault])
