"""The reader's own notes over a book: read as far as they are sound and belong to it.

A book is the work of many and must be whole; the overlay is one reader's desk. A slip
there must not close the book, so what has faults is left out, and said.
"""

from __future__ import annotations

from collections.abc import Sequence

from readerkit.content.book import Book
from readerkit.content.kind import Document, E, Kind
from readerkit.content.parse_book import (
    IN_FOLDER,
    BookFile,
    Read,
    read_book,
    read_strictly,
)
from readerkit.errors import ContentError, ContentFault
from readerkit.wording.numbers import counted

PINS = "annotations/upstreams.yaml"
_MEND = (
    "mend this, or move the file away: until then its notes are left out, and "
    "annotate --check fails"
)


def for_this_book(
    own: Sequence[BookFile], shared: Sequence[BookFile], read: Read
) -> tuple[list[BookFile], str]:
    """Return the overlay's files that fit this book, and a line about the others.

    A file of notes on an upstream that the book lacks belongs to another book.
    """
    if not own:
        return [], ""
    pins, faults = read_book([f for f in (*shared, *own) if f.path == PINS], read)
    if faults:
        return [*own], ""
    known = {*pins.upstreams, *IN_FOLDER}
    here = [file for file in own if (_upstream(file) or "mirrors") in known]
    away = sorted({_upstream(file) for file in own if file not in here})
    if not away:
        return here, ""
    files = counted(len(own) - len(here), "file")
    return here, f"left out: {files} of your own notes on {', '.join(away)}, which " + (
        f"this book does not pin (it pins {', '.join(pins.upstreams)})"
    )


def read_exactly(
    files: Sequence[BookFile], read: Read, known: ContentError
) -> tuple[Book, list[ContentFault]]:
    """Return what is known of a faulty book, each of its faults with its exact place.

    What was remembered of a file has no places: of those that are sound none is asked.
    """
    faulty = {fault.file for fault in known.faults}

    def exact(file: BookFile, kind: Kind[E]) -> Document[E]:
        is_faulty = file.mine or file.name in faulty
        return (read_strictly if is_faulty else read)(file, kind)

    return read_book(files, exact)


def _upstream(file: BookFile) -> str:
    """Return the upstream of an overlay's file; empty where it is on all of them."""
    _, *folders, name = file.path.split("/")
    if name.endswith(".lock"):
        return name.removesuffix(".lock")
    return folders[0] if folders else ""


def read_with_overlay(
    shared: Sequence[BookFile], own: Sequence[BookFile], read: Read, *, whole: bool
) -> tuple[Book, str]:
    """Return the book with the overlay's sound files, and why others were left out.

    Raises:
        ContentError: a fault of the book itself, or with ``whole`` any.
    """
    left_out: list[ContentFault] = []
    while True:
        book, faults = read_book([*shared, *own], read)
        if not faults:
            return book, f"{ContentError(left_out)}\n{_MEND}" if left_out else ""
        faulty = {fault.file for fault in faults}
        if whole or faulty - {file.name for file in own}:
            raise ContentError(faults)
        # What is left may refer to what is gone now: read again.
        own = [file for file in own if file.name not in faulty]
        left_out += faults
