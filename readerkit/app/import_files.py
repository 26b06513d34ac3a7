"""What a file of another program asks for: steps of CodeTour, quotes of notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from readerkit.app.export_notes import file_text
from readerkit.app.import_notes import (
    MAX_NOTES,
    OfferedNote,
    TakenNotes,
    outside,
    place,
)
from readerkit.app.library import Library
from readerkit.app.new_note import find_lines
from readerkit.content.code_tour_file import CodeTour, TourStep, read_code_tour
from readerkit.content.quotes_file import Quote, QuotedNote, read_quotes
from readerkit.errors import (
    AnchorError,
    ReaderkitError,
    SeveralFilesError,
    WrongUseError,
)
from readerkit.model.anchor import Span
from readerkit.model.base import ID_PATTERN
from readerkit.model.git_names import TreePath
from readerkit.upstreams import Upstream

Home = tuple[Upstream, TreePath]
"""Where a file is."""


@dataclass(slots=True)
class ImportedTour:
    """A tour that was imported: the way through its notes, and what is said on it."""

    title: str
    about: str
    stops: list[tuple[str, str]] = field(default_factory=list)
    """Ids of notes, each with what is said before it."""


def import_code_tour(
    data: bytes,
    file: str,
    library: Library,
    concepts: Sequence[str],
    made: TakenNotes,
    *,
    any_ref: bool = False,
) -> ImportedTour:
    """Take the notes that the steps of a tour become; return the way through them.

    Raises:
        ReaderkitError: no tour, or a step outside the book; nothing is written.
    """
    tour = read_code_tour(data, file)
    _refuse_many(len(tour.steps), file)
    way = ImportedTour(tour.title, tour.description)
    steps = [_step(each, n, file, library) for n, each in enumerate(tour.steps, 1)]
    said: list[str] = []
    for step, (number, found) in zip(tour.steps, enumerate(steps, 1), strict=True):
        name = f"{tour.title}: step {number}" if tour.title else f"step {number}"
        if found is None:
            said.append(step.description)
            continue
        if isinstance(found, str):
            made.unplaced.append((name, found))
            continue
        upstream, path = found
        if other := _other_ref(tour, upstream, any_ref=any_ref):
            made.unplaced.append((name, other))
            continue
        rows = file_text(library.sources(upstream), path).split("\n")
        lines = step.lines(rows)
        if isinstance(lines, str):
            made.unplaced.append((name, lines))
            continue
        before, text = _parted(step)
        said += [before] if before else []
        fields = {"title": step.title, "text": text}
        fields = {key: text for key, text in fields.items() if text.strip()}
        count = len(made.notes)
        place(
            OfferedNote(name, upstream, Span(path, *lines), fields),
            library,
            made,
            concepts,
        )
        if len(made.notes) > count:
            way.stops.append((made.notes[-1], "\n\n".join(said)))
            said = []
    return way


def _parted(step: TourStep) -> tuple[str, str]:
    """Return what a step says on the way there, and what it says of its lines.

    The heading between them is its title once more.
    """
    heading = rf"(?m)^#+ {re.escape(step.title)}\s*$"
    parts = re.split(heading, step.description, maxsplit=1) if step.title else []
    before, text = parts if len(parts) == 2 else ("", step.description)
    return before.strip(), text.strip()


def _step(
    step: TourStep, number: int, file: str, library: Library
) -> Home | str | None:
    """Return the file of a step, or why it has none; None for one that only speaks."""
    name = f"{file}: step {number}"
    if step.uri is not None:
        raise outside(name, step.uri, library)
    if step.file is None:
        return None
    return _find(step.file, name, library)


def _find(path: str, name: str, library: Library) -> Home | str:
    """Return a file that may have been there once, or what is said where none is."""
    if path.startswith("/") or ".." in path.split("/") or "\\" in path:
        raise outside(name, path, library)
    try:
        upstream, span = find_lines(path, 1, 1, library)
    except SeveralFilesError as error:
        meant = ", ".join(error.files)
        raise WrongUseError(f"{name}: {error.reason} {meant}") from None
    except ReaderkitError as error:
        return str(error).partition("\n")[0]
    return upstream, span.path


def _other_ref(tour: CodeTour, upstream: Upstream, *, any_ref: bool) -> str:
    """Return why the lines of a tour are not those of the pin; or nothing."""
    same = {"", upstream.commit, upstream.tag, f"refs/tags/{upstream.tag}"}
    is_short = len(tour.ref) >= 7 and upstream.commit.startswith(tour.ref)
    if any_ref or not upstream.is_pinned or tour.ref in same or is_short:
        return ""
    return (
        f"its lines are of '{tour.ref}', and {upstream.name} is at {upstream.pin}: "
        "--any-ref takes them all the same"
    )


def import_quotes(
    data: bytes, file: str, library: Library, concepts: Sequence[str]
) -> TakenNotes:
    """Return the notes that Web Annotations become.

    Raises:
        ReaderkitError: no annotations, or one outside the book; nothing is written.
    """
    notes = read_quotes(data, file)
    _refuse_many(len(notes), file)
    made = TakenNotes()
    homes = [_home(each, file, library) for each in notes]
    for note, home in zip(notes, homes, strict=True):
        if isinstance(home, str):
            made.unplaced.append((note.name, home))
            continue
        upstream, path = home
        try:
            span = _lines(note.quote, file_text(library.sources(upstream), path), path)
        except AnchorError as error:
            made.unplaced.append((note.name, error.reason))
            continue
        place(_asked(note, upstream, span), library, made, concepts)
    return made


def _asked(note: QuotedNote, upstream: Upstream, span: Span) -> OfferedNote:
    own = note.name.rpartition("urn:readerkit:note:")[2]
    fields = dict(note.parts)
    if note.said and not fields.get("text"):
        fields["text"] = note.said
    return OfferedNote(
        note.name,
        upstream,
        span,
        fields,
        own if re.fullmatch(ID_PATTERN, own) and len(own) <= 60 else "",
        note.tags,
        note.cited,
    )


def _home(note: QuotedNote, file: str, library: Library) -> Home | str:
    """Return the file that an annotation is about, or why there is none."""
    name, source = f"{file}: {note.name}", note.source
    ours = "urn:readerkit:file:"
    if source.startswith(ours):
        home, _, path = unquote(source.removeprefix(ours)).partition("/")
        if home not in library.book.upstreams:
            raise outside(name, source, library)
        found = _find(path, name, library)
        if isinstance(found, str):
            return found
        return library.book.upstreams[home], found[1]
    if not urlsplit(source).scheme:
        return _find(unquote(source), name, library)
    for upstream in library.book.upstreams.values():
        top = f"{upstream.url}/blob/"
        if upstream.url and source.startswith(top):
            path = unquote(source.removeprefix(top).partition("/")[2].partition("#")[0])
            found = _find(path, name, library)
            if found == (upstream, path) or isinstance(found, str):
                return found
    raise outside(name, source, library)


def _lines(quote: Quote, text: str, path: TreePath) -> Span:
    """Return the lines that a quote stands on.

    Raises:
        AnchorError: nowhere, or in several places.
    """
    from readerkit.anchors.quotes import find_quote

    if quote.exact:
        around = (quote.prefix, quote.suffix, quote.start)
        start, end = find_quote(text, quote.exact, *around)
    elif quote.start is not None and quote.end is not None:
        start, end = quote.start, quote.end
        if not start < end <= len(text):
            raise AnchorError(f"its position {start}-{end} is outside the file")
    else:
        raise AnchorError("it has no TextQuoteSelector, and no TextPositionSelector")
    inner = text[start:end]
    start += len(inner) - len(inner.lstrip())
    end -= len(inner) - len(inner.rstrip())
    if start >= end:
        raise AnchorError("it quotes nothing")
    first = text.count("\n", 0, start) + 1
    return Span(path, first, first + text.count("\n", start, end))


def _refuse_many(count: int, file: str) -> None:
    if count > MAX_NOTES:
        raise ReaderkitError(
            f"{file}: got {count:,} notes, expected at most {MAX_NOTES:,} in a file"
        )
