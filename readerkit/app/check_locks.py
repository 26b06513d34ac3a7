"""``annotate --check``: a book held against code and locks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from readerkit.anchors.grammars import grammar
from readerkit.app.check_claims import hold_claims
from readerkit.app.check_living import EditedCode, edited_code, not_locked, told_reader
from readerkit.app.library import Library, note_progress
from readerkit.content.annotations import Annotation, Concept, Condition
from readerkit.content.book import Book
from readerkit.content.mirrors import Mirror, MirrorSection
from readerkit.content.resolved_notes import (
    Note,
    Sources,
    check_mirrors,
    lacking_grammars,
    lock_differences,
    lock_notes,
    resolve_each,
)
from readerkit.content.tours import Tour
from readerkit.content.translations import TranslatedMirror, Translation
from readerkit.errors import (
    ContentError,
    ContentFault,
    LockError,
    ReaderkitError,
)
from readerkit.model.code_languages import language_of
from readerkit.upstreams import Upstream
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted


@dataclass(slots=True)
class Report:
    """What was held, and everything that is wrong with it."""

    upstreams: list[dict[str, Any]] = field(default_factory=list)
    concepts: dict[str, Any] | None = None
    """Where the whole book was held. The same for the next."""
    conditions: dict[str, Any] | None = None
    mirrors: dict[str, Any] | None = None
    tours: dict[str, Any] | None = None
    beside: Mapping[str, int] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    """How many hold, what is not decided here, and what nothing proves."""
    faults: list[ContentFault] = field(default_factory=list)
    differences: list[ContentFault] = field(default_factory=list)
    """From the locks, each at its note."""
    edited: list[EditedCode] = field(default_factory=list)
    """Notes on code that lives on, and was edited under them."""
    still_true: list[ContentFault] = field(default_factory=list)
    """Sentences that hold on other grounds than the locks know."""
    to_do: list[str] = field(default_factory=list)
    """What sentences that do not hold ask for."""
    unreviewed: list[ContentFault] = field(default_factory=list)
    """Notes that nobody reviewed against their code, where that is asked for."""

    def add(self, error: ReaderkitError) -> None:
        """Take in what ended the check before its time."""
        if isinstance(error, ContentError):
            known = {*self.faults}
            self.faults += [fault for fault in error.faults if fault not in known]
        else:
            self.faults.append(ContentFault("", 0, 0, str(error)))

    def to_plain(self) -> dict[str, Any]:
        """Return the report as JSON has it; every fault with its place."""
        found = [*sorted({*self.faults}), *self.differences, *self.still_true]
        found += [*(each.fault for each in self.edited), *self.unreviewed]
        rows = [
            {
                "file": fault.file or None,
                "line": fault.line or None,
                "column": fault.column or None,
                "message": fault.message,
            }
            for fault in found
        ]
        return {
            "ok": not found,
            "faults": rows,
            "upstreams": self.upstreams,
            "concepts": self.concepts,
            "conditions": self.conditions,
            "mirrors": self.mirrors,
            "tours": self.tours,
            "beside": dict(self.beside),
            "claims": self.claims,
            "edited": [each.to_plain() for each in self.edited],
        }

    def refuse(self) -> None:
        """Raise everything that is wrong, if anything is.

        Raises:
            ReaderkitError: all of it; as LockError where the locks alone differ.
        """
        said = [str(ContentError({*self.faults}))] if self.faults else []
        if self.differences or self.still_true:
            rows = [
                f"{each['upstream']}.lock: {line}"
                for each in self.upstreams
                for line in each["differences"]
            ] + [str(each) for each in self.still_true]
            places = counted(len(rows), "place")
            said += [
                *rows,
                f"book and locks differ in {places}: look at each, then "
                + typed("annotate", "--update-lock"),
            ]
        if self.edited:
            ids = [each.note.id for each in self.edited]
            are = "note stands" if len(ids) == 1 else "notes stand"
            said += [
                *(str(each.fault) for each in self.edited),
                f"{len(ids)} {are} on code that changed: read each against it, mend "
                f"what is no longer so, then {typed('review', *ids)}",
            ]
        said += self.to_do
        if self.unreviewed:
            said += [str(ContentError(self.unreviewed))]
        if said:
            only_locks = not self.faults and not self.unreviewed
            raise (LockError if only_locks else ReaderkitError)("\n".join(said))


def check(
    library: Library,
    upstream: Upstream | None,
    report: Report,
    *,
    strict: bool,
    claims: bool = False,
    lacking: bool = True,
) -> None:
    """Hold one upstream's notes, or the whole book, and report what is wrong.

    With ``strict`` that is a note that nobody reviewed, and with ``claims`` too every
    sentence that nothing proves; these are looked for where ``lacking`` asks for it.
    """
    book = library.book
    asked = book.notes_on(upstream.name) if upstream else book.annotations.values()
    if missing := lacking_grammars(asked, _grammar_of):
        report.faults += missing
        return
    opened: dict[str, Sources] = {}
    notes: list[Note] = []
    for each in [upstream] if upstream else book.upstreams.values():
        note_progress(f"holding the notes on {each.name}")
        try:
            with library.sources_to_hold(each) as sources:
                opened[each.name] = sources
                is_asked = each == upstream
                notes += _check_notes(
                    library, sources, report, strict=strict, always=is_asked
                )
        except ReaderkitError as error:
            report.add(error)
    if upstream and upstream.folder:
        report.faults += check_mirrors(book, opened)
    if upstream is None:
        from readerkit.app.check_book import check_beside  # brings the site along

        report.concepts = check_concepts(book)
        report.conditions = check_conditions(book)
        report.mirrors = check_translated_mirrors(book)
        report.tours = check_translated_tours(book)
        beside = check_beside(library, opened, notes)
        report.beside = beside.counts
        report.faults += beside.faults
    note_progress("holding the claims")
    try:
        held = hold_claims(library, upstream, lacking=lacking)
    except ContentError as error:  # a chapter or a quiz that cannot be read
        report.add(error)
        return
    report.claims = held.to_plain()
    report.faults += held.faults()
    report.still_true = [*held.differences()]
    report.to_do += held.to_do()
    if strict and claims:
        report.unreviewed += held.unproved_faults()


def _grammar_of(note: Annotation) -> None:
    if language := language_of(note.anchor.file):
        grammar(language)


def _check_notes(
    library: Library, sources: Sources, report: Report, *, strict: bool, always: bool
) -> list[Note]:
    """Hold the notes on one upstream; return those that resolve."""
    book, upstream = library.book, sources.upstream
    anchored = {each.id: each for each in book.anchored_in(upstream.name)}
    notes, faults = resolve_each(book, sources, anchored.values())
    if upstream.is_living:
        lock_now = library.lock(upstream)
        faults, lost = told_reader(faults, lock_now, anchored)
        report.to_do += [_follow(upstream, lost)] if lost else []
    report.faults += faults
    result: dict[str, Any] = {"upstream": upstream.name, "anchors": len(notes)}
    is_locked = upstream.is_locked
    differences: dict[str, str] = {}
    if upstream.is_living:
        differences = not_locked(lock_now, notes)
        report.edited += edited_code(lock_now, notes, sources)
    elif is_locked and not sources.is_absent:
        differences = _differences(book, sources, notes)
    read = ("reviewed", "floating", "absent")
    unread = [n.annotation for n in notes if n.state not in read]
    if notes or faults or differences or always:
        behind = _behind(book.notes_on(upstream.name), book.translations)
        report.upstreams.append(
            {
                **result,
                "mirrored": len(book.minis_in(upstream.name)),
                "locked": is_locked,
                "living": upstream.is_living,
                "absent": str(upstream.not_fetched) if sources.is_absent else "",
                "differences": [*differences.values()],
                "not_reviewed": [each.id for each in unread],
                "translations_to_check": behind,
            }
        )
    lock = f"annotations/{upstream.name}.lock"
    for name, line in differences.items():
        note = anchored.get(name)
        fault = note.place.fault(line) if note else ContentFault(lock, 1, 1, line)
        report.differences.append(fault)
    if strict:
        what = "not reviewed against this code"
        report.unreviewed += [
            a.place.fault(f"{a.id}: {what}: {typed('review', a.id)}") for a in unread
        ]
        what = "on a folder, which has no lock to be reviewed against"
        floating = [n.annotation for n in notes if n.state == "floating"]
        report.unreviewed += [a.place.fault(f"{a.id}: {what}") for a in floating]
    return [note for note in notes if note.annotation.id in book.annotations]


def _follow(upstream: Upstream, lost: int) -> str:
    are = "note does" if lost == 1 else "notes do"
    return (
        f"{lost} {are} not find the code that was reviewed: where it was moved or "
        f"renamed, {typed('drift', upstream.name)} says where it is now, and --apply "
        "follows it"
    )


def _differences(book: Book, sources: Sources, notes: list[Note]) -> dict[str, str]:
    """Return how each note differs from its lock, by id; the whole lock by nothing."""
    locked = book.locks[sources.upstream.name]
    now = lock_notes(locked, notes, sources)
    lost = {
        each.id for each in book.anchored_in(sources.upstream.name)
    } - now.anchors.keys()
    # What does not resolve at all was told already.
    kept = {name: anchor for name, anchor in locked.anchors.items() if name in lost}
    now = now.with_anchors({**now.anchors, **kept})
    found = lock_differences(locked, now, sources.upstream)
    return {
        name: f"{name}: {each}" if name else str(each) for name, each in found.items()
    }


def _behind(
    english: Iterable[Annotation | Concept | Condition | Tour],
    translations: Mapping[str, Mapping[str, Translation]],
) -> list[dict[str, Any]]:
    """Return the translations that do not say that they are of today's English."""
    return [
        _to_check(each.id, language, said, each.stamp)
        for each in english
        for language, entries in sorted(translations.items())
        if (said := entries.get(each.id)) and said.of != each.stamp
    ]


def _to_check(name: str, language: str, said: Translation, now: str) -> dict[str, Any]:
    """Return a translation that does not say that it is of this English."""
    changed = [change._asdict() for change in said.changes(now)]
    row = {"id": name, "language": language, "of": said.of}
    return {**row, "now": now, "changed": changed}


def check_concepts(book: Book) -> dict[str, Any]:
    """Return how many concepts there are, and of which a translation is outdated."""
    behind = _behind(book.concepts.values(), book.concept_translations)
    return {"concepts": len(book.concepts), "translations_to_check": behind}


def check_conditions(book: Book) -> dict[str, Any]:
    """Return the same of what notes presume."""
    behind = _behind(book.conditions.values(), book.condition_translations)
    return {"conditions": len(book.conditions), "translations_to_check": behind}


def check_translated_mirrors(book: Book) -> dict[str, Any]:
    """Return how many mirrors there are, and of what in them a translation is old."""
    behind = [
        _to_check(name, language, said, part.stamp)
        for mirror in book.mirrors.values()
        for language, entries in sorted(book.mirror_translations.items())
        if mirror.id in entries
        for name, said, part in _translated_parts(mirror, entries[mirror.id])
        if said.of != part.stamp
    ]
    return {"mirrors": len(book.mirrors), "translations_to_check": behind}


def check_translated_tours(book: Book) -> dict[str, Any]:
    """Return how many tours there are, and of which a translation is old."""
    behind = _behind(book.tours.values(), book.tour_translations)
    return {"tours": len(book.tours), "translations_to_check": behind}


def _translated_parts(
    mirror: Mirror, said: TranslatedMirror
) -> Iterator[tuple[str, Translation, Mirror | MirrorSection]]:
    """Yield a mirror, and each section that has a translation, with its name."""
    yield mirror.id, said, mirror
    for section in mirror.sections:
        if section.title in said.sections:
            name = f"{mirror.id}, {section.title}"
            yield name, said.sections[section.title], section
