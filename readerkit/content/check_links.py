"""What one file of a book alone cannot tell: ids, references, concepts, cycles."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from readerkit.content.annotations import (
    ANNOTATIONS,
    COMPARISONS,
    CONCEPTS,
    CONDITIONS,
    REFERENCES,
    UPSTREAMS,
    Annotation,
    Citation,
)
from readerkit.content.book import NAMED_BY, WrittenBook, WrittenEntry
from readerkit.content.kind import Document, Kind, Place
from readerkit.content.mirrors import MIRROR, Mirror, MirrorSection
from readerkit.content.tours import TOUR, TOUR_TRANSLATION, TranslatedTour
from readerkit.content.translations import (
    CONCEPT_TRANSLATION,
    CONDITION_TRANSLATION,
    MIRROR_TRANSLATION,
    NOTE_TRANSLATION,
    TranslatedMirror,
    Translation,
)
from readerkit.errors import ContentFault
from readerkit.wording.meant_name import did_you_mean, near_names

if TYPE_CHECKING:
    from readerkit.content.strict_yaml import Path


@dataclass(frozen=True, slots=True)
class _Names:
    """The names that something may be called by."""

    what: str
    kind: Kind[Any]
    """The kind of file that gives these names."""
    names: Set[str]

    def unknown(self, name: str) -> tuple[str, str, str]:
        """Return a fault's what, got and expected for a name that is none of these."""
        near = [f"'{each}'" for each in near_names(name, self.names)]
        hint = f" ({did_you_mean(near[0])})" if near else ""
        return f"unknown {self.what}", f"'{name}'{hint}", f"a known {self.what}"


def check_links(written: WrittenBook) -> list[ContentFault]:
    """Return the faults that show once all files are there."""
    check = _Check(written)
    check.run()
    return check.faults


class _Check:
    def __init__(self, written: WrittenBook) -> None:
        self.written = written
        self.faults: list[ContentFault] = []
        self.works = written.by_name(REFERENCES)

    def run(self) -> None:
        entries = self.written.entries
        for kind in NAMED_BY:
            self._check_unique(kind)
        concepts, conditions, works, notes, compared = (
            _Names(what, kind, self.written.by_name(kind).keys())
            for what, kind in (
                ("concept", CONCEPTS),
                ("condition", CONDITIONS),
                ("reference", REFERENCES),
                ("annotation", ANNOTATIONS),
                ("comparison", COMPARISONS),
            )
        )
        for note in (*entries[ANNOTATIONS], *self.written.unplaced):
            self._check_upstream(note.entry)
            self._check_names(note, ("concepts",), note.entry.concepts, concepts)
            presumed = note.entry.conditions
            self._check_names(note, ("conditions",), presumed, conditions)
            self._check_citations(note, note.entry.references, works)
        for concept in entries[CONCEPTS]:
            self._check_names(concept, ("requires",), concept.entry.requires, concepts)
            self._check_names(concept, ("recurs",), concept.entry.recurs, concepts)
            self._check_citations(concept, concept.entry.references, works)
        for mirror in entries[MIRROR]:
            self._check_names(mirror, ("concepts",), mirror.entry.concepts, concepts)
            for index, section in enumerate(mirror.entry.sections):
                self._check_section(mirror, index, section, notes, compared)
            self._check_minis(mirror.entry)
        for tour in entries[TOUR]:
            for number, stop in enumerate(tour.entry.stops):
                self._check_note(tour, ("stops", number), stop.note, notes)
        self._check_locks()
        self._check_translations(NOTE_TRANSLATION, notes)
        self._check_translations(CONCEPT_TRANSLATION, concepts)
        self._check_translations(CONDITION_TRANSLATION, conditions)
        self._check_translations(
            MIRROR_TRANSLATION,
            _Names("mirror", MIRROR, self.written.by_name(MIRROR).keys()),
        )
        self._check_translations(
            TOUR_TRANSLATION, _Names("tour", TOUR, self.written.by_name(TOUR).keys())
        )
        self._check_translated_sections()
        self._check_translated_tours()
        self._check_cycles()

    def _check_section(
        self,
        mirror: WrittenEntry[Mirror],
        index: int,
        section: MirrorSection,
        notes: _Names,
        compared: _Names,
    ) -> None:
        at: Path = ("sections", index)
        self._check_names(mirror, (*at, "upstream"), section.upstream, notes)
        for key in ("events", "differences"):
            for number, entry in enumerate(getattr(section, key)):
                path = (*at, key, number, "comparisons")
                self._check_names(mirror, path, entry.comparisons, compared)
        for number, difference in enumerate(section.differences):
            if difference.note:
                path = (*at, "differences", number)
                self._check_note(mirror, path, difference.note, notes)

    def _check_note(
        self, written: WrittenEntry[Any], at: Path, note: str, notes: _Names
    ) -> None:
        if not self._is_known(note, notes):
            path = (*written.path, *at, "note")
            self.faults.append(written.document.fault(path, *notes.unknown(note)))

    def _check_unique(self, kind: Kind[Any]) -> None:
        first: dict[str, Place] = {}
        for written in self.written.entries[kind]:
            name = getattr(written.entry, NAMED_BY[kind])
            known = first.setdefault(name, written.entry.place)
            if known is not written.entry.place:
                got = f"'{name}', first at {known.file}:{known.line}"
                fault = written.entry.place.fault("a duplicate id", got, "each id once")
                self.faults.append(fault)

    def _upstreams(self) -> Set[str] | None:
        """Return the upstreams that there are; None where some cannot be known."""
        is_unsure = UPSTREAMS in self.written.unread
        return None if is_unsure else {*self.written.upstreams, *self.written.refused}

    def _check_upstream(self, annotation: Annotation) -> None:
        known = self._upstreams()
        if known is not None and annotation.upstream not in known:
            got = f"folder '{annotation.upstream}'"
            expected = "one of " + ", ".join(self.written.upstreams)
            fault = annotation.place.fault("unknown upstream", got, expected)
            self.faults.append(fault)
        for each in annotation.also if known is not None else ():
            path, upstreams = each.anchor.file, self.written.upstreams
            if not any(upstream.includes(path) for upstream in upstreams.values()):
                expected = "a file of " + ", ".join(upstreams)
                what = "lines of a file that no upstream includes"
                self.faults.append(each.place.fault(what, f"'{path}'", expected))

    def _check_locks(self) -> None:
        known = self._upstreams()
        for name, file in self.written.lock_files.items():
            if known is not None and name not in known:
                got = f"'{name}'"
                expected = "one of " + ", ".join(self.written.upstreams)
                fault = ContentFault(file, 1, 1, "a lock of no upstream", got, expected)
                self.faults.append(fault)

    def _is_known(self, name: str, known: _Names) -> bool:
        is_unsure = known.kind in self.written.unread or name in self.written.refused
        return is_unsure or name in known.names

    def _check_names(
        self,
        written: WrittenEntry[Any],
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
        folders = [each for each in self.written.upstreams.values() if each.folder]
        if UPSTREAMS in self.written.unread:
            return
        expected = "a file of " + ", ".join(each.name for each in folders)
        for section in mirror.sections:
            for anchor, place in zip(section.mini, section.places, strict=True):
                if not any(each.includes(anchor.file) for each in folders):
                    what = "a mini that no folder of upstreams.yaml includes"
                    got = f"'{anchor.file}'"
                    wanted = expected if folders else "an upstream with a folder"
                    self.faults.append(place.fault(what, got, wanted))

    def _check_translations(self, kind: Kind[Any], known: _Names) -> None:
        first: dict[tuple[str, str], tuple[Document[Translation], Path]] = {}
        for each in self.written.translated:
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

    def _check_translated_sections(self) -> None:
        """Check that each translated section is one, and says no more than it."""
        mirrors = self.written.by_name(MIRROR)
        for each in self.written.translated:
            for path, entry in each.document.entries.items():
                mirror = mirrors.get(str(path[0]))
                if each.kind is MIRROR_TRANSLATION and mirror:
                    assert isinstance(entry, TranslatedMirror)
                    at = (*path, "sections")
                    self._check_sections(mirror, entry, each.document, at)

    def _check_translated_tours(self) -> None:
        """Check that none says a sentence of more stops than there are."""
        tours = self.written.by_name(TOUR)
        for each in self.written.translated:
            for path, entry in each.document.entries.items():
                tour = tours.get(str(path[0]))
                if isinstance(entry, TranslatedTour) and tour:
                    got, most = len(entry.says), len(tour.stops)
                    if got > most:
                        what = "more texts in 'says' than stops in English"
                        at = (*path, "says")
                        told = (what, f"{got}", f"at most {most}")
                        self.faults.append(each.document.fault(at, *told))

    def _check_sections(
        self, mirror: Mirror, said: TranslatedMirror, document: Document[Any], at: Path
    ) -> None:
        sections = {section.title: section for section in mirror.sections}
        known = _Names(f"section of {mirror.id}", MIRROR, sections.keys())
        for title, section in said.sections.items():
            path = (*at, title)
            if title not in sections:
                fault = document.key_fault(path, *known.unknown(title))
                self.faults.append(fault)
                continue
            for key in ("leaves_out", "differences"):
                ours, theirs = getattr(sections[title], key), getattr(section, key)
                if len(theirs) > len(ours):
                    what = f"more texts in '{key}' than in English"
                    got, expected = f"{len(theirs)}", f"at most {len(ours)}"
                    fault = document.key_fault((*path, key), what, got, expected)
                    self.faults.append(fault)

    def _check_citations(
        self, written: WrittenEntry[Any], citations: Sequence[Citation], known: _Names
    ) -> None:
        document = written.document
        for index, citation in enumerate(citations):
            at: Path = (*written.path, "references", index)
            if not self._is_known(citation.key, known):
                problem = known.unknown(citation.key)
                self.faults.append(document.fault((*at, "key"), *problem))
            work = self.works.get(citation.key)
            if work and citation.section and citation.section not in work.sections:
                got = f"'{citation.section}' of {citation.key}"
                sections = ", ".join(work.sections)
                expected = f"one of {sections} (add it to references.yaml)"
                problem = "unknown section", got, expected
                self.faults.append(document.fault((*at, "section"), *problem))

    def _check_cycles(self) -> None:
        concepts = [written.entry for written in self.written.entries[CONCEPTS]]
        graph = {concept.id: concept.requires for concept in concepts}
        while True:
            try:
                TopologicalSorter(graph).prepare()
                return
            except CycleError as error:
                first, *_ = cycle = error.args[1]
            place = next(concept.place for concept in concepts if concept.id == first)
            got = " -> ".join(reversed(cycle))
            fault = place.fault("concepts that require each other", got, "no cycle")
            self.faults.append(fault)
            graph[first] = ()  # cut here, to find the next one
