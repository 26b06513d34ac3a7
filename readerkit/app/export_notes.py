"""Gathers what leaves a book: notes with their lines, tours with their stops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from readerkit.app.library import Library, warn
from readerkit.content.annotations import Annotation
from readerkit.content.resolved_notes import Note, Sources, resolve_notes
from readerkit.content.tours import Tour
from readerkit.errors import ReaderkitError
from readerkit.model.git_names import TreePath
from readerkit.render.exchange.code_tour import TourStop
from readerkit.render.exchange.shared_note import SharedNote
from readerkit.upstreams import Upstream


def shared_notes(
    library: Library,
    upstreams: Iterable[Upstream],
    wanted: Callable[[Annotation], bool],
    language: str = "en",
) -> Iterator[SharedNote]:
    """Yield the notes that are wanted, in reading order, with the text of their files.

    Raises:
        ContentError: a note that does not resolve.
    """
    for upstream in upstreams:
        chosen = [n for n in library.book.notes_on(upstream.name) if wanted(n)]
        if not chosen:
            continue
        sources = library.sources(upstream)
        if sources.is_absent:
            warn(f"without their lines: {upstream.not_fetched}")
        for note in resolve_notes(library.book, sources, chosen):
            yield shared(library, note, sources, language)


def shared(
    library: Library, note: Note, sources: Sources, language: str = "en"
) -> SharedNote:
    """Return a note as it leaves the book, in a language."""
    own = note.annotation
    if language != "en":
        own = own.with_texts(library.book.translated(own, language).texts)
    text = None if sources.is_absent else file_text(sources, note.span.path)
    works = library.book.references
    presumed = library.book.conditions_of(own, language)
    return SharedNote(own, note.span, sources.upstream, text, works, presumed)


def notes_of(library: Library, tour: Tour) -> Iterator[tuple[Note, Sources]]:
    """Yield the notes of a tour in its order, each with the files of its upstream.

    Raises:
        ContentError: a note that does not resolve.
    """
    book, opened = library.book, dict[str, Sources]()
    for stop in tour.stops:
        annotation = book.annotations[stop.note]
        name = annotation.upstream
        if name not in opened:
            opened[name] = library.sources(book.upstreams[name])
        [note] = resolve_notes(book, opened[name], [annotation])
        yield note, opened[name]


def tour_stops(library: Library, tour: Tour, language: str = "en") -> list[TourStop]:
    """Return the stops of a tour as they leave the book, in a language."""
    told = library.book.tour_in(tour.id, language)
    pairs = zip(told.stops, notes_of(library, tour), strict=True)
    return [
        TourStop(shared(library, note, sources, language), stop.says)
        for stop, (note, sources) in pairs
    ]


def home_of(stops: list[TourStop]) -> Upstream:
    """Return the upstream that most stops are in: the checkout that a tour opens in."""
    by_name = {stop.note.upstream.name: stop.note.upstream for stop in stops}
    counts = Counter(stop.note.upstream.name for stop in stops)
    return by_name[counts.most_common(1)[0][0]]


def file_text(sources: Sources, path: TreePath) -> str:
    """Return a file as text, decoded as anchors show it."""
    return sources.file(path).data.decode("utf-8", "replace")


def by_topic(notes: Iterable[SharedNote]) -> dict[tuple[str, str], list[SharedNote]]:
    """Return notes by their upstream and the file they were written in."""
    found: dict[tuple[str, str], list[SharedNote]] = {}
    for note in notes:
        key = note.upstream.name, note.annotation.topic
        found.setdefault(key, []).append(note)
    return found


def refuse_none(notes: list[SharedNote]) -> None:
    """Refuse an export of nothing.

    Raises:
        ReaderkitError: no note fits.
    """
    if not notes:
        raise ReaderkitError("no note fits all of that: there is nothing to export")
