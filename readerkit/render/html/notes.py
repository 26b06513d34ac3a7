"""A note as a page shows it: its texts in each language, its sources, its proof."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from readerkit.content.annotations import TEXT_FIELDS, Annotation, Citation, CitedWork
from readerkit.content.book import Book, Note
from readerkit.content.translations import Translation
from readerkit.errors import ContentError, ContentFault
from readerkit.model.language import SPANISH, Say
from readerkit.render.html import addresses
from readerkit.render.html.escape import shown
from readerkit.render.html.markdown import FormulaError, line, prose, title
from readerkit.render.html.quiz_page import TopicQuestions
from readerkit.render.html.words import Text, Words

LABELS = {
    "decision": "Decided",
    "alternative": "Instead of",
    "why": "Why",
    "cost": "Cost",
    "text": "",
}
STATES = {
    "reviewed": "reviewed against exactly these lines",
    "unreviewed": "not reviewed yet",
    "changed": "these lines changed since the review",
    "unlocked": "these lines are not in the lock",
    "floating": "in a folder, read where it stands",
}


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A labelled part of a note."""

    label: str
    text: Text


@dataclass(frozen=True, slots=True)
class Cite:
    """A work, and a section of it."""

    key: str
    work: Markup
    section: Text
    url: str


@dataclass(frozen=True, slots=True)
class Card:
    """A concept as it is mentioned: its name, and what a hover shows."""

    id: str
    title: Text
    summary: Text
    is_translated: bool
    """Whether its summary is; some names are the same in both languages."""
    is_outdated: bool


@dataclass(frozen=True, slots=True)
class SectionBeside:
    """The section of a mirror that puts mini lines next to a note."""

    relation: str
    title: Markup
    page: str
    """The section on the side-by-side page."""
    lines: tuple[tuple[Markup, str], ...]
    """``ddp.py:7-9`` each, and where they stand."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What records saw in a note's lines."""

    text: Text
    ran: bool
    records: tuple[tuple[str, str], ...]
    """Each comparison that saw this, and the page that shows it, if one does.

    None where no record is about these lines.
    """


@dataclass(frozen=True, slots=True)
class NoteView:
    """All that a page shows of a note."""

    id: str
    kind: str
    title: Text
    page: str
    """Where it stands: the page of its file, at the note."""
    path: Markup
    first: int
    last: int
    symbol: Markup
    paragraphs: tuple[Paragraph, ...]
    cites: tuple[Cite, ...]
    cards: tuple[Card, ...]
    beside: tuple[SectionBeside, ...]
    seen: tuple[Seen, ...]
    asked: tuple[TopicQuestions, ...]
    """Quiz questions that lead here."""
    state: str
    is_sound: bool
    """Whether it was reviewed against the lines it stands at."""
    permalink: str
    commit: str
    blob: str
    is_translated: bool
    is_outdated: bool
    """Whether the English changed after it was translated."""
    mine: bool


def note_view(
    note: Note,
    book: Book,
    words: Words,
    *,
    beside: tuple[SectionBeside, ...] = (),
    seen: tuple[Seen, ...] = (),
    asked: tuple[TopicQuestions, ...] = (),
) -> NoteView:
    """Return what a page shows of a note.

    Raises:
        ContentError: a formula in it that cannot be set.
    """
    annotation = note.annotation
    upstream = book.upstreams[annotation.upstream]
    lock = book.locks.get(upstream.name)
    texts = _texts(annotation, book)
    page = addresses.source_page(upstream.name, note.span.path)
    return NoteView(
        id=annotation.id,
        kind=annotation.kind,
        title=texts.title,
        page=f"{page}#{annotation.id}",
        path=shown(note.span.path),
        first=note.span.first,
        last=note.span.last,
        symbol=shown(note.symbol),
        paragraphs=texts.paragraphs,
        cites=tuple(cite(citation, book, words) for citation in annotation.references),
        cards=tuple(card(name, book) for name in annotation.concepts),
        beside=beside,
        seen=seen,
        asked=asked,
        state=STATES[note.state],
        is_sound=note.state in ("reviewed", "floating"),
        permalink=upstream.permalink(note.span),
        commit=upstream.commit,
        blob=lock.files.get(note.span.path, "") if lock else "",
        is_translated=texts.is_translated,
        is_outdated=book.translated(annotation, SPANISH).is_outdated(annotation.stamp),
        mine=annotation.mine,
    )


@dataclass(frozen=True, slots=True)
class _Texts:
    title: Text
    paragraphs: tuple[Paragraph, ...]
    is_translated: bool


def check_texts(notes: Iterable[Note], book: Book) -> None:
    """Refuse notes and concepts whose text cannot be shown.

    Raises:
        ContentError: every formula that cannot be set.
    """
    faults: list[ContentFault] = []
    texts: list[Callable[[], object]] = [
        *(partial(_texts, note.annotation, book) for note in notes),
        *(partial(card, name, book) for name in book.concepts),
    ]
    for show in texts:
        try:
            show()
        except ContentError as error:
            faults += error.faults
    if faults:
        raise ContentError(faults)


def _texts(annotation: Annotation, book: Book) -> _Texts:
    spanish = book.translated(annotation, SPANISH)
    try:
        return _Texts(
            _text(annotation.title, spanish.texts.get("title"), title),
            tuple(_paragraphs(annotation, spanish)),
            bool(spanish.texts),
        )
    except FormulaError as error:
        raise ContentError(
            [annotation.place.fault(f"{annotation.id}: {error}")]
        ) from None


def _paragraphs(annotation: Annotation, spanish: Translation) -> Iterator[Paragraph]:
    for name in LABELS:
        text: str = getattr(annotation, name)
        if text and name in TEXT_FIELDS:
            yield Paragraph(LABELS[name], _text(text, spanish.texts.get(name), prose))


def _text(english: str, spanish: str | None, render: Callable[[str], Markup]) -> Text:
    own = render(english)
    try:
        return Text(own, render(spanish) if spanish else None)
    except FormulaError as error:
        raise FormulaError(f"in its translation ({SPANISH}): {error}") from None


def cite(citation: Citation, book: Book, words: Words) -> Cite:
    """Return a citation in words, with the address of the work."""
    work = book.references[citation.key]
    url = work.url if work.url.startswith(("https://", "http://")) else ""
    return Cite(
        citation.key,
        shown(f"{work.authors} {work.year}, {work.title}"),
        words.text(partial(_section, citation, work)),
        url,
    )


def _section(citation: Citation, work: CitedWork, say: Say) -> str:
    """Return the section of a work, with its title; empty where none is cited."""
    title = work.sections.get(citation.section, "")
    number = citation.section
    section = say("section {number}").format(number=number)
    named = section if number[:1].isdigit() else number
    return f"{named}, “{title}”" if title and title != number else named


def concept_title(name: str, book: Book) -> Text:
    """Return what a concept is called."""
    concept = book.concepts[name]
    spanish = book.translated(concept, SPANISH)
    return _text(concept.title, spanish.texts.get("title"), shown)


def card(name: str, book: Book, *, render: Callable[[str], Markup] = line) -> Card:
    """Return a concept as it is mentioned.

    Raises:
        ContentError: a formula in its summary that cannot be set.
    """
    concept = book.concepts[name]
    spanish = book.translated(concept, SPANISH)
    try:
        summary = _text(concept.summary, spanish.texts.get("summary"), render)
    except FormulaError as error:
        raise ContentError([concept.place.fault(f"{name}: {error}")]) from None
    return Card(
        name,
        concept_title(name, book),
        summary,
        is_translated="summary" in spanish.texts,
        is_outdated=spanish.is_outdated(concept.stamp),
    )
