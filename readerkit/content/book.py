"""Everything joined: what people wrote, with every anchor resolved to its lines.

A Book holds what was written and the locks; ``resolve_notes`` adds the lines. Nothing
here touches a disk. ``reading`` makes the Book.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replace_lock
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from readerkit.content.annotations import Annotation, CitedWork, ComparisonName, Concept
from readerkit.content.claims import Claimed
from readerkit.content.kind import Place
from readerkit.content.mirrors import Difference, Mirror, MirrorSection
from readerkit.content.tours import Tour, TranslatedTour
from readerkit.content.translations import TranslatedMirror, Translation
from readerkit.errors import AnchorError, ContentError, ContentFault, SourceError
from readerkit.model.anchor import Anchor, Span
from readerkit.model.freshness import Change, changes
from readerkit.model.git_names import NO_BLOB, NO_COMMIT, BlobId, TreePath
from readerkit.upstreams import Lock, LockedAnchor, Upstream
from readerkit.upstreams.store import blob_id
from readerkit.wording.meant_name import near_names

if TYPE_CHECKING:  # the parser comes where lines must be found
    from readerkit.anchors import SourceFile

MINIS = "minis"
"""The name of the upstream whose folder holds the mini implementations that run."""

State = Literal["reviewed", "unreviewed", "changed", "unlocked", "floating", "absent"]
"""How a note stands to the lock; floating: in a folder, which has none; absent: its
source was not fetched, and where it stands is what was locked."""

Located = tuple[Span, str]
"""Lines, and the anchor's definition, or the smallest one around them."""

Remember = Callable[[str, Anchor, Callable[[], Located]], Located]
"""Returns where an anchor stands in a blob: from memory, or else as it is told."""


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

    def notes_on(self, upstream: str) -> list[Annotation]:
        """Return the annotations of one upstream in the order they were written."""
        return [a for a in self.annotations.values() if a.upstream == upstream]

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

    def translated(self, entry: Annotation | Concept, language: str) -> Translation:
        """Return the translation of an entry; an empty one where there is none."""
        is_note = isinstance(entry, Annotation)
        by_language = self.translations if is_note else self.concept_translations
        return by_language.get(language, {}).get(entry.id, Translation())

    def texts_in(self, entry: str, part: Claimed, language: str) -> Mapping[str, str]:
        """Return the texts of a part of an entry in a language, those that it has."""
        if isinstance(part, Annotation | Concept):
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


@dataclass(frozen=True, slots=True)
class Note:
    """An annotation with its lines."""

    annotation: Annotation
    span: Span
    symbol: str
    state: State
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
                near = near_names(path, self.paths)
                at = f" at {self.upstream.commit[:12]}" if self.upstream.commit else ""
                raise AnchorError(
                    f"{self.upstream.name}{at} includes no file {path!r}",
                    [f"did you mean {candidate}?" for candidate in near],
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
        if path not in self._blobs:
            self._blobs[path] = blob_id(self._read(path))
        return self._remember(self._blobs[path], anchor, lambda: self._find(anchor))

    def _find(self, anchor: Anchor) -> Located:
        span = self.resolve(anchor)
        if anchor.symbol:
            return span, anchor.symbol
        around = self.file(span.path).symbol_around(span.first, span.last)
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
    """Return the notes that resolve, in reading order, and a fault for each other."""
    name = sources.upstream.name
    lock = book.locks.get(name, Lock(NO_COMMIT))
    chosen = book.notes_on(name) if annotations is None else annotations
    notes, faults = [], []
    for annotation in chosen:
        try:
            if sources.is_absent:
                notes.append(_as_locked(lock, annotation, book))
                continue
            span, symbol = sources.place(annotation.anchor)
        except AnchorError as error:
            faults.append(annotation.place.fault(f"{annotation.id}: {error}"))
            continue
        state = _state(lock, annotation.id, span, sources)
        minis = book.minis_beside(annotation.id)
        notes.append(Note(annotation, span, symbol, state, minis))
    return sorted(notes, key=lambda note: (note.span, note.annotation.id)), faults


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


def lock_notes(lock: Lock, notes: Iterable[Note], sources: Sources) -> Lock:
    """Return the lock with what ``notes`` resolve to now; reviews are kept."""
    from readerkit.anchors import fingerprint

    anchors = {}
    for note in notes:
        known = lock.anchors.get(note.annotation.id)
        marks = fingerprint(note.span, sources.file(note.span.path))
        if (
            known
            and sources.upstream.is_living
            and known.reviewed not in ("", marks.code)
        ):
            anchors[note.annotation.id] = known  # until somebody has read it again
            continue
        fresh = LockedAnchor(note.span, marks, blob=_blob_of(note.span, lock, sources))
        if known:
            fresh = replace_lock(
                fresh, reviewed=known.reviewed, by=known.by, on=known.on, at=known.at
            )
        anchors[note.annotation.id] = fresh
    return lock.with_anchors(anchors)


def _blob_of(span: Span, lock: Lock, sources: Sources) -> BlobId:
    if sources.upstream.is_living:
        return blob_id(sources.read(span.path))
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


def _state(lock: Lock, name: str, span: Span, sources: Sources) -> State:
    upstream, locked = sources.upstream, lock.anchors.get(name)
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
    return "reviewed" if locked.reviewed else "unreviewed"
