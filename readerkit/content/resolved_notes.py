"""The notes of a book with their lines: each anchor resolved, and held to its lock.

Files are read and parsed where lines must be found, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from dataclasses import replace as replace_lock
from typing import TYPE_CHECKING, Literal

from readerkit.content.annotations import Annotation
from readerkit.content.book import Book
from readerkit.content.kind import Place
from readerkit.content.mirrors import Mirror
from readerkit.errors import (
    AnchorError,
    ContentError,
    ContentFault,
    GrammarError,
    SourceError,
)
from readerkit.model.anchor import Anchor, Span
from readerkit.model.freshness import Change, changes
from readerkit.model.git_names import NO_BLOB, NO_COMMIT, BlobId, TreePath
from readerkit.upstreams import Lock, LockedAnchor, Upstream
from readerkit.upstreams.store import blob_id
from readerkit.wording.meant_name import did_you_mean, near_names
from readerkit.wording.numbers import counted

if TYPE_CHECKING:  # the parser comes where lines must be found
    from readerkit.anchors import SourceFile

NoteState = Literal[
    "reviewed", "unreviewed", "changed", "unlocked", "floating", "absent"
]
"""How a note stands to the lock; floating: in a folder, which has none; absent: its
source was not fetched, and where it stands is what was locked."""

Located = tuple[Span, str]
"""Lines, and the anchor's definition, or the smallest one around them."""

Remember = Callable[[str, Anchor, Callable[[], Located]], Located]
"""Returns where an anchor stands in a blob: from memory, or else as it is told."""


@dataclass(frozen=True, slots=True)
class Note:
    """An annotation with its lines."""

    annotation: Annotation
    span: Span
    symbol: str
    state: NoteState
    minis: tuple[str, ...] = ()


class Sources:
    """The parsed files of one upstream, each read and parsed at most once.

    Where ``remember`` knows a place, its file is read and verified, but not parsed.
    """

    def __init__(
        self,
        upstream: Upstream,
        paths: Iterable[TreePath],
        read: Callable[[TreePath], bytes],
        remember: Remember | None = None,
        *,
        is_absent: bool = False,
    ) -> None:
        self.upstream = upstream
        self.is_absent = is_absent
        """Whether it is optional, and was not fetched: nothing of it can be read."""
        self.paths = frozenset(paths)
        self._read = read
        self._remember = remember
        self._parsed: dict[TreePath, SourceFile] = {}
        self._resolved: dict[Anchor, Span] = {}
        self._blobs: dict[TreePath, BlobId] = {}

    def read(self, path: TreePath) -> bytes:
        """Return the verified bytes of a file that the upstream includes.

        Raises:
            SourceError: they were not fetched, and only ``fetch`` brings them.
        """
        if self.is_absent:
            raise SourceError(self.upstream.not_fetched)
        return self._read(path)

    def file(self, path: TreePath) -> SourceFile:
        """Return a parsed file.

        Raises:
            AnchorError: a path that the upstream does not include.
        """
        if path not in self._parsed:
            if path not in self.paths:
                at = f" at {self.upstream.commit[:12]}" if self.upstream.commit else ""
                raise AnchorError(
                    f"{self.upstream.name}{at} includes no file {path!r}",
                    map(did_you_mean, near_names(path, self.paths)),
                )
            from readerkit.anchors import SourceFile

            self._parsed[path] = SourceFile(path, self.read(path))
        return self._parsed[path]

    def resolve(self, anchor: Anchor) -> Span:
        """Return the span of an anchor.

        Raises:
            AnchorError: see ``anchors.resolve``.
        """
        if anchor not in self._resolved:
            from readerkit.anchors import resolve

            self._resolved[anchor] = resolve(anchor, self.file(anchor.file))
        return self._resolved[anchor]

    def place(self, anchor: Anchor) -> Located:
        """Return the span of an anchor and its definition's name, or the one around.

        Raises:
            AnchorError: see ``anchors.resolve``.
        """
        path = anchor.file
        if self._remember is None or path not in self.paths:
            return self._find(anchor)
        return self._remember(self.blob(path), anchor, lambda: self._find(anchor))

    def blob(self, path: TreePath) -> BlobId:
        """Return what git calls the bytes of a file."""
        if path not in self._blobs:
            self._blobs[path] = blob_id(self._read(path))
        return self._blobs[path]

    def _find(self, anchor: Anchor) -> Located:
        return with_symbol(self.resolve(anchor), anchor, self.file(anchor.file))


def with_symbol(span: Span, anchor: Anchor, source: SourceFile) -> Located:
    """Return the span of an anchor with its definition, or the smallest one around."""
    if anchor.symbol:
        return span, anchor.symbol
    around = source.symbol_around(span.first, span.last)
    return span, around.name if around else ""


def resolve_notes(
    book: Book, sources: Sources, annotations: Iterable[Annotation] | None = None
) -> list[Note]:
    """Return the notes of one upstream in reading order: by file, then by line.

    Raises:
        ContentError: every anchor that does not resolve to exactly one place.
    """
    notes, faults = resolve_each(book, sources, annotations)
    if faults:
        raise ContentError(faults)
    return notes


def resolve_each(
    book: Book, sources: Sources, annotations: Iterable[Annotation] | None = None
) -> tuple[list[Note], list[ContentFault]]:
    """Return the notes that resolve, in reading order, and a fault for each other.

    A grammar that is missing is one fault, for all the notes that want it.
    """
    name = sources.upstream.name
    lock = book.locks.get(name, Lock(NO_COMMIT))
    notes: list[Note] = []
    faults: list[ContentFault] = []

    def place(annotation: Annotation) -> None:
        try:
            if sources.is_absent:
                notes.append(_as_locked(lock, annotation, book))
                return
            span, symbol = sources.place(annotation.anchor)
        except GrammarError:
            raise
        except AnchorError as error:
            faults.append(annotation.place.fault(f"{annotation.id}: {error}"))
            return
        state = _state(lock, annotation, span, sources)
        minis = book.minis_beside(annotation.id)
        notes.append(Note(annotation, span, symbol, state, minis))

    chosen = book.notes_on(name) if annotations is None else annotations
    faults += lacking_grammars(chosen, place)
    return sorted(notes, key=lambda note: (note.span, note.annotation.id)), faults


def lacking_grammars(
    notes: Iterable[Annotation], look: Callable[[Annotation], object]
) -> list[ContentFault]:
    """Look at each note; return one fault for each grammar that is missing for it."""
    lacking: dict[str, list[Annotation]] = {}
    for note in notes:
        try:
            look(note)
        except GrammarError as error:
            lacking.setdefault(str(error), []).append(note)
    return [
        those[0].place.fault(
            f"{said}: without it {counted(len(those), 'note')} cannot be held"
        )
        for said, those in lacking.items()
    ]


def _as_locked(lock: Lock, annotation: Annotation, book: Book) -> Note:
    """Return a note whose source was not fetched, where its lock says it stands."""
    known = lock.anchors.get(annotation.id)
    if known is None:
        upstream = book.upstreams[annotation.upstream]
        raise AnchorError(f"its lock does not hold it. {upstream.not_fetched}")
    symbol, minis = annotation.anchor.symbol or "", book.minis_beside(annotation.id)
    return Note(annotation, known.span, symbol, "absent", minis)


def check_mirrors(book: Book, folders: Mapping[str, Sources]) -> list[ContentFault]:
    """Return a fault for every mini anchor of a mirror that does not resolve.

    ``folders`` are the upstreams that are read where they stand, by name.
    """
    faults: list[ContentFault] = []
    for mirror in book.mirrors.values():
        for section in mirror.sections:
            for anchor, place in zip(section.mini, section.places, strict=True):
                minis = folders.get(book.home_of(anchor.file))
                if minis is None:  # no such folder: a fault of the book's own
                    continue
                try:
                    resolve_mini(minis, mirror, anchor, place)
                except ContentError as error:
                    faults += error.faults
    return faults


def resolve_mini(minis: Sources, mirror: Mirror, anchor: Anchor, place: Place) -> Span:
    """Return the lines of an anchor of a mirror, which is written at ``place``.

    Raises:
        ContentError: it does not resolve to exactly one place.
    """
    try:
        return minis.resolve(anchor)
    except AnchorError as error:
        raise ContentError([place.fault(f"{mirror.id}: {error}")]) from None


def lock_notes(
    lock: Lock, notes: Iterable[Note], sources: Sources, *, followed: bool = False
) -> Lock:
    """Return the lock with what ``notes`` resolve to now; reviews are kept.

    What was ``followed`` by its lines is the place that was read, if its code is.
    """
    from readerkit.anchors import fingerprint

    anchors = {}
    for note in notes:
        known = lock.anchors.get(note.annotation.id)
        marks = fingerprint(note.span, sources.file(note.span.path))
        is_read = known is not None and known.reviewed in ("", marks.code)
        if known and is_read and not followed:
            is_read = not is_another(note.annotation.anchor, note.span, known, sources)
        if known and not is_read and known.reviewed and sources.upstream.is_living:
            anchors[note.annotation.id] = known  # until somebody has read it again
            continue
        fresh = LockedAnchor(note.span, marks, blob=_blob_of(note.span, lock, sources))
        if known and (is_read or known.reviewed != marks.code):
            fresh = replace_lock(
                fresh, reviewed=known.reviewed, by=known.by, on=known.on, at=known.at
            )
        anchors[note.annotation.id] = fresh
    return lock.with_anchors(anchors)


def is_another(anchor: Anchor, span: Span, was: LockedAnchor, sources: Sources) -> bool:
    """Tell whether an anchor may pick another of equal places than the locked one."""
    if not anchor.counts or was.blob == sources.blob(span.path):
        return False
    from readerkit.anchors import equals_of, is_same_of_equals

    source = sources.file(span.path)
    equals = equals_of(anchor, source)
    return not is_same_of_equals(span, equals, was.fingerprint, source)


def _blob_of(span: Span, lock: Lock, sources: Sources) -> BlobId:
    if sources.upstream.is_living:
        return sources.blob(span.path)
    return lock.files.get(span.path, NO_BLOB)


def lock_differences(locked: Lock, now: Lock, upstream: Upstream) -> dict[str, Change]:
    """Return the first part of each anchor that is not what was locked, by id.

    Under the empty id: that the lock is of another commit.
    """
    kept = {name: anchor.made_from for name, anchor in locked.anchors.items()}
    found = {name: anchor.made_from for name, anchor in now.anchors.items()}
    pin = changes({upstream.name: locked.commit}, {upstream.name: upstream.commit})
    names = sorted({**kept, **found})
    by_name = {name: changes(kept.get(name, {}), found.get(name, {})) for name in names}
    return {name: each[0] for name, each in {"": pin, **by_name}.items() if each}


def _state(lock: Lock, note: Annotation, span: Span, sources: Sources) -> NoteState:
    upstream, locked = sources.upstream, lock.anchors.get(note.id)
    if not upstream.is_locked:
        return "floating"
    if locked is None or (locked.span != span and not upstream.is_living):
        return "unlocked"
    if not locked.reviewed and not upstream.is_living:
        return "unreviewed"
    code = locked.fingerprint.code
    if locked.blob != _blob_of(span, lock, sources):  # the pin, or the code, moved
        from readerkit.anchors import fingerprint

        code = fingerprint(span, sources.file(span.path)).code
    if code != (locked.reviewed or locked.fingerprint.code):
        return "changed"
    if upstream.is_living and is_another(note.anchor, span, locked, sources):
        return "changed"
    return "reviewed" if locked.reviewed else "unreviewed"
