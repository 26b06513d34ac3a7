"""Pages for people who learn: where to start, concepts, references, reading paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from readerkit.content.annotations import Concept, Reference
from readerkit.content.book import Note
from readerkit.content.reading_paths import Failure, Pair, ReadingPaths
from readerkit.content.routes import by_need
from readerkit.content.translations import Translation
from readerkit.render.html import addresses
from readerkit.render.html.escape import shown
from readerkit.render.html.excerpt import Excerpt, excerpt
from readerkit.render.html.file_page import Rights, rights_of, view
from readerkit.render.html.markdown import prose
from readerkit.render.html.mirror_page import MirrorLine, mirror_index
from readerkit.render.html.notes import Card, Cite, NoteView, card, cite, concept_title
from readerkit.render.html.site_model import Shelf
from readerkit.render.html.words import Text, label


@dataclass(frozen=True, slots=True)
class NoteLine:
    """A note in a list."""

    id: str
    page: str
    title: Text
    kind: str
    place: Markup


@dataclass(frozen=True, slots=True)
class ConceptView:
    """A concept with everything that hangs on it."""

    card: Card
    pressure: str
    layer: Text
    requires: tuple[tuple[str, Text], ...]
    recurs: tuple[tuple[str, Text], ...]
    cites: tuple[Cite, ...]
    notes: tuple[NoteLine, ...]
    mirrors: tuple[tuple[str, Markup], ...]


@dataclass(frozen=True, slots=True)
class ConceptPage:
    """All concepts, by the pressure that they answer."""

    address: str
    title: Markup
    pressures: tuple[tuple[str, tuple[ConceptView, ...]], ...]


@dataclass(frozen=True, slots=True)
class WorkView:
    """A work that notes cite, and the notes that do."""

    key: str
    title: Markup
    authors: Markup
    year: int
    url: str
    cited_by: tuple[tuple[Markup, NoteLine], ...]


@dataclass(frozen=True, slots=True)
class ReferencePage:
    """All works."""

    address: str
    title: Markup
    works: tuple[WorkView, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """A station of a path: what it is about, and the notes to read there."""

    title: Text
    page: str
    text: Text
    notes: tuple[NoteLine, ...]
    is_translated: bool = True
    is_outdated: bool = False


@dataclass(frozen=True, slots=True)
class Pairing:
    """A memory mechanism against a coordination mechanism."""

    memory: tuple[str, Text]
    coordination: tuple[str, Text]
    wire: Text
    notes: tuple[NoteLine, ...]
    is_translated: bool
    is_outdated: bool


@dataclass(frozen=True, slots=True)
class PathPage:
    """The three reading paths."""

    address: str
    title: Markup
    prerequisite: tuple[Stop, ...]
    failure: tuple[Stop, ...]
    synthesis: tuple[Pairing, ...]


@dataclass(frozen=True, slots=True)
class ChapterLine:
    """A chapter or a lab in a list."""

    page: str
    title: Text


@dataclass(frozen=True, slots=True)
class FileLine:
    """An annotated file in the list of what to read."""

    page: str
    path: Markup
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StartPage:
    """The way in: one stop at once, then what to read, and how far one is."""

    address: str
    title: Markup
    stop: NoteView | None
    lines: Excerpt | None
    stop_page: str
    stop_in: Markup
    """The code base of the stop."""
    ran_in: tuple[tuple[str, str], ...]
    """Records in which its lines ran, each with its page."""
    mirror: str
    chapters: tuple[ChapterLine, ...]
    labs: tuple[ChapterLine, ...]
    estimates: tuple[tuple[str, Text], ...]
    mirrors: tuple[MirrorLine, ...]
    upstreams: tuple[tuple[Markup, str, tuple[FileLine, ...]], ...]
    counts: tuple[tuple[str, int], ...]
    rights: tuple[Rights, ...]


def note_line(shelf: Shelf, annotation: str) -> NoteLine:
    """Return a note as a line of a list."""
    seen = view(shelf, annotation)
    place = addresses.lines_text(seen.path, seen.first, seen.last)
    return NoteLine(seen.id, seen.page, seen.title, seen.kind, Markup(place))


def concept_page(shelf: Shelf) -> ConceptPage:
    """Return the page of all concepts."""
    views = [_concept(shelf, concept) for concept in shelf.book.concepts.values()]
    pressures = dict.fromkeys(each.pressure for each in views)
    return ConceptPage(
        addresses.CONCEPTS,
        shown("Concepts"),
        tuple((p, tuple(v for v in views if v.pressure == p)) for p in pressures),
    )


def _concept(shelf: Shelf, concept: Concept) -> ConceptView:
    book = shelf.book
    return ConceptView(
        card=card(concept.id, book, render=prose),
        pressure=concept.pressure,
        layer=label(concept.layer),
        requires=_titles(shelf, concept.requires),
        recurs=_titles(shelf, concept.recurs),
        cites=tuple(cite(citation, book) for citation in concept.references),
        notes=tuple(
            note_line(shelf, name)
            for name, note in shelf.notes.items()
            if concept.id in note.annotation.concepts
        ),
        mirrors=tuple(
            (addresses.mirror_page(mirror.id), shown(mirror.title))
            for mirror in book.mirrors.values()
            if concept.id in mirror.concepts
        ),
    )


def _titles(shelf: Shelf, names: Sequence[str]) -> tuple[tuple[str, Text], ...]:
    return tuple(_title(shelf, name) for name in names)


def _title(shelf: Shelf, name: str) -> tuple[str, Text]:
    return name, concept_title(name, shelf.book)


def reference_page(shelf: Shelf) -> ReferencePage:
    """Return the page of all works."""
    return ReferencePage(
        addresses.REFERENCES,
        shown("References"),
        tuple(_work(shelf, work) for work in shelf.book.references.values()),
    )


def _work(shelf: Shelf, work: Reference) -> WorkView:
    citing = [
        (shown(citation.section), note_line(shelf, name))
        for name, note in shelf.notes.items()
        for citation in note.annotation.references
        if citation.key == work.key
    ]
    is_web = work.url.startswith(("https://", "http://"))
    return WorkView(
        work.key,
        shown(work.title),
        shown(work.authors),
        work.year,
        work.url if is_web else "",
        tuple(citing),
    )


def path_page(shelf: Shelf, routes: ReadingPaths) -> PathPage:
    """Return the page of the reading paths."""
    return PathPage(
        addresses.PATHS,
        shown("Reading paths"),
        tuple(_prerequisites(shelf)),
        tuple(_failure(shelf, routes, failure) for failure in routes.failures),
        tuple(_pairing(shelf, routes, pair) for pair in routes.pairs),
    )


def _failure(shelf: Shelf, routes: ReadingPaths, failure: Failure) -> Stop:
    spanish = routes.spanish.get(failure.id, Translation())
    symptom, cause = spanish.texts.get("symptom"), spanish.texts.get("cause")
    return Stop(
        Text(shown(failure.symptom), shown(symptom) if symptom else None),
        "",
        Text(prose(failure.cause), prose(cause) if cause else None),
        tuple(note_line(shelf, name) for name in failure.notes),
        is_translated=bool(symptom and cause),
        is_outdated=spanish.is_outdated(failure.stamp),
    )


def _pairing(shelf: Shelf, routes: ReadingPaths, pair: Pair) -> Pairing:
    spanish = routes.spanish.get(pair.id, Translation())
    wire = spanish.texts.get("wire")
    return Pairing(
        _title(shelf, pair.memory),
        _title(shelf, pair.coordination),
        Text(prose(pair.wire), prose(wire) if wire else None),
        tuple(note_line(shelf, name) for name in pair.notes),
        is_translated=bool(wire),
        is_outdated=spanish.is_outdated(pair.stamp),
    )


def _prerequisites(shelf: Shelf) -> Iterator[Stop]:
    """Yield the concepts that have notes, each after what it requires."""
    annotations = [note.annotation for note in shelf.notes.values()]
    for name, notes in by_need(shelf.book.concepts, annotations):
        page = f"{addresses.CONCEPTS}#{name}"
        lines = tuple(note_line(shelf, each) for each in notes)
        yield Stop(concept_title(name, shelf.book), page, Text(Markup("")), lines)


def start_page(
    shelf: Shelf,
    first_stop: str,
    chapters: Sequence[ChapterLine],
    labs: Sequence[ChapterLine],
    estimates: Sequence[tuple[str, Text]],
) -> StartPage:
    """Return the start page, with one stop on it to begin with."""
    stop = shelf.notes.get(first_stop)
    mirrors = mirror_index(shelf).mirrors
    with_stop = [mirror for mirror, _, _ in shelf.sections_with(first_stop)]
    pinned = [u for u in shelf.book.upstreams.values() if shelf.book.notes_on(u.name)]
    lines = sum(len(sheet.drawn.lines) for sheet in shelf.sheets.values())
    return StartPage(
        address=addresses.START,
        title=shown("Read the code that trains large models"),
        stop=view(shelf, first_stop) if stop else None,
        lines=excerpt(shelf, stop.annotation.upstream, stop.span, addresses.START)
        if stop
        else None,
        stop_page=view(shelf, first_stop).page if stop else "",
        stop_in=_code_base(shelf, stop) if stop else Markup(""),
        ran_in=_ran_in(shelf, stop) if stop else (),
        mirror=addresses.mirror_page(with_stop[-1]) if with_stop else "",
        chapters=tuple(chapters),
        labs=tuple(labs),
        estimates=tuple(estimates),
        mirrors=mirrors,
        upstreams=tuple(
            (shown(u.title), addresses.tree_page(u.name), tuple(_files(shelf, u.name)))
            for u in pinned
        ),
        counts=(
            ("notes", len(shelf.notes)),
            ("files", len(shelf.sheets)),
            ("lines", lines),
            ("records", len(shelf.evidence)),
        ),
        rights=rights_of(shelf, (u.name for u in pinned)),
    )


def _code_base(shelf: Shelf, note: Note) -> Markup:
    upstream = shelf.book.upstreams[note.annotation.upstream]
    return shown(f"{upstream.title} {upstream.tag}".strip())


def _ran_in(shelf: Shelf, note: Note) -> tuple[tuple[str, str], ...]:
    span = note.span
    lines = range(span.first, span.last + 1)
    ran = shelf.ran.get((note.annotation.upstream, span.path), {})
    return tuple(
        (name, shelf.strips.get(name, ""))
        for name, lit in ran.items()
        if not lit.isdisjoint(lines)
    )


def _files(shelf: Shelf, upstream: str) -> Iterator[FileLine]:
    paths = dict.fromkeys(
        note.span.path
        for note in shelf.notes.values()
        if note.annotation.upstream == upstream
    )
    for path in sorted(paths):
        notes = tuple(n.annotation.id for n in shelf.notes_in((upstream, path)))
        yield FileLine(addresses.source_page(upstream, path), shown(path), notes)
