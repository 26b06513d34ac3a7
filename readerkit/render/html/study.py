"""Pages for people who learn: where to start, concepts, references, reading paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from readerkit.content.annotations import CitedWork, Concept
from readerkit.content.book import Note
from readerkit.content.reading_order import by_need
from readerkit.content.reading_paths import Failure, MechanismPair, ReadingPaths
from readerkit.content.translations import Translation
from readerkit.render.html import addresses
from readerkit.render.html.escape import shown
from readerkit.render.html.excerpt import Excerpt, excerpt
from readerkit.render.html.file_page import Rights, rights_of, view
from readerkit.render.html.markdown import prose
from readerkit.render.html.mirror_page import MirrorLine, mirror_index
from readerkit.render.html.notes import Card, Cite, NoteView, card, cite, concept_title
from readerkit.render.html.site_model import SiteModel
from readerkit.render.html.words import Text


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
    layer: str
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
class StopView:
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
    prerequisite: tuple[StopView, ...]
    failure: tuple[StopView, ...]
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
    estimates: tuple[tuple[str, str], ...]
    mirrors: tuple[MirrorLine, ...]
    upstreams: tuple[tuple[Markup, str, tuple[FileLine, ...]], ...]
    counts: tuple[tuple[str, int], ...]
    rights: tuple[Rights, ...]


def note_line(model: SiteModel, annotation: str) -> NoteLine:
    """Return a note as a line of a list."""
    seen = view(model, annotation)
    place = addresses.lines_text(seen.path, seen.first, seen.last)
    return NoteLine(seen.id, seen.page, seen.title, seen.kind, Markup(place))


def concept_page(model: SiteModel) -> ConceptPage:
    """Return the page of all concepts."""
    views = [_concept(model, concept) for concept in model.book.concepts.values()]
    pressures = dict.fromkeys(each.pressure for each in views)
    return ConceptPage(
        addresses.CONCEPTS,
        shown("Concepts"),
        tuple((p, tuple(v for v in views if v.pressure == p)) for p in pressures),
    )


def _concept(model: SiteModel, concept: Concept) -> ConceptView:
    book = model.book
    return ConceptView(
        card=card(concept.id, book, render=prose),
        pressure=concept.pressure,
        layer=concept.layer,
        requires=_titles(model, concept.requires),
        recurs=_titles(model, concept.recurs),
        cites=tuple(
            cite(citation, book, model.words) for citation in concept.references
        ),
        notes=tuple(
            note_line(model, name)
            for name, note in model.notes.items()
            if concept.id in note.annotation.concepts
        ),
        mirrors=tuple(
            (addresses.mirror_page(mirror.id), shown(mirror.title))
            for mirror in book.mirrors.values()
            if concept.id in mirror.concepts
        ),
    )


def _titles(model: SiteModel, names: Sequence[str]) -> tuple[tuple[str, Text], ...]:
    return tuple(_title(model, name) for name in names)


def _title(model: SiteModel, name: str) -> tuple[str, Text]:
    return name, concept_title(name, model.book)


def reference_page(model: SiteModel) -> ReferencePage:
    """Return the page of all works."""
    return ReferencePage(
        addresses.REFERENCES,
        shown("References"),
        tuple(_work(model, work) for work in model.book.references.values()),
    )


def _work(model: SiteModel, work: CitedWork) -> WorkView:
    citing = [
        (shown(citation.section), note_line(model, name))
        for name, note in model.notes.items()
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


def path_page(model: SiteModel, routes: ReadingPaths) -> PathPage:
    """Return the page of the reading paths."""
    return PathPage(
        addresses.PATHS,
        shown("Reading paths"),
        tuple(_prerequisites(model)),
        tuple(_failure(model, routes, failure) for failure in routes.failures),
        tuple(_pairing(model, routes, pair) for pair in routes.pairs),
    )


def _failure(model: SiteModel, routes: ReadingPaths, failure: Failure) -> StopView:
    spanish = routes.spanish.get(failure.id, Translation())
    symptom, cause = spanish.texts.get("symptom"), spanish.texts.get("cause")
    return StopView(
        Text(shown(failure.symptom), shown(symptom) if symptom else None),
        "",
        Text(prose(failure.cause), prose(cause) if cause else None),
        tuple(note_line(model, name) for name in failure.notes),
        is_translated=bool(symptom and cause),
        is_outdated=spanish.is_outdated(failure.stamp),
    )


def _pairing(model: SiteModel, routes: ReadingPaths, pair: MechanismPair) -> Pairing:
    spanish = routes.spanish.get(pair.id, Translation())
    wire = spanish.texts.get("wire")
    return Pairing(
        _title(model, pair.memory),
        _title(model, pair.coordination),
        Text(prose(pair.wire), prose(wire) if wire else None),
        tuple(note_line(model, name) for name in pair.notes),
        is_translated=bool(wire),
        is_outdated=spanish.is_outdated(pair.stamp),
    )


def _prerequisites(model: SiteModel) -> Iterator[StopView]:
    """Yield the concepts that have notes, each after what it requires."""
    annotations = [note.annotation for note in model.notes.values()]
    for name, notes in by_need(model.book.concepts, annotations):
        page = f"{addresses.CONCEPTS}#{name}"
        lines = tuple(note_line(model, each) for each in notes)
        yield StopView(concept_title(name, model.book), page, Text(Markup("")), lines)


def start_page(
    model: SiteModel,
    first_stop: str,
    chapters: Sequence[ChapterLine],
    labs: Sequence[ChapterLine],
    estimates: Sequence[tuple[str, str]],
) -> StartPage:
    """Return the start page, with one stop on it to begin with."""
    stop = model.notes.get(first_stop)
    mirrors = mirror_index(model).mirrors
    with_stop = [mirror for mirror, _, _ in model.sections_with(first_stop)]
    pinned = [u for u in model.book.upstreams.values() if model.book.notes_on(u.name)]
    lines = sum(len(sheet.drawn.lines) for sheet in model.sheets.values())
    return StartPage(
        address=addresses.START,
        title=shown("Read the code that trains large models"),
        stop=view(model, first_stop) if stop else None,
        lines=excerpt(model, stop.annotation.upstream, stop.span, addresses.START)
        if stop
        else None,
        stop_page=view(model, first_stop).page if stop else "",
        stop_in=_code_base(model, stop) if stop else Markup(""),
        ran_in=_ran_in(model, stop) if stop else (),
        mirror=addresses.mirror_page(with_stop[-1]) if with_stop else "",
        chapters=tuple(chapters),
        labs=tuple(labs),
        estimates=tuple(estimates),
        mirrors=mirrors,
        upstreams=tuple(
            (shown(u.title), addresses.tree_page(u.name), tuple(_files(model, u.name)))
            for u in pinned
        ),
        counts=(
            ("notes", len(model.notes)),
            ("files", len(model.sheets)),
            ("lines", lines),
            ("records", len(model.evidence)),
        ),
        rights=rights_of(model, (u.name for u in pinned)),
    )


def _code_base(model: SiteModel, note: Note) -> Markup:
    upstream = model.book.upstreams[note.annotation.upstream]
    return shown(f"{upstream.title} {upstream.tag}".strip())


def _ran_in(model: SiteModel, note: Note) -> tuple[tuple[str, str], ...]:
    span = note.span
    lines = range(span.first, span.last + 1)
    ran = model.ran.get((note.annotation.upstream, span.path), {})
    return tuple(
        (name, model.strips.get(name, ""))
        for name, lit in ran.items()
        if not lit.isdisjoint(lines)
    )


def _files(model: SiteModel, upstream: str) -> Iterator[FileLine]:
    paths = dict.fromkeys(
        note.span.path
        for note in model.notes.values()
        if note.annotation.upstream == upstream
    )
    for path in sorted(paths):
        notes = tuple(n.annotation.id for n in model.notes_in((upstream, path)))
        yield FileLine(addresses.source_page(upstream, path), shown(path), notes)
