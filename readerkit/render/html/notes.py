"""A note as a page shows it: its texts in each language, its sources, its proof."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from markupsafe import Markup

from readerkit.content.annotations import Annotation, Citation, CitedWork, Condition
from readerkit.content.book import Book
from readerkit.content.mirrors import Mirror
from readerkit.content.resolved_notes import Note
from readerkit.content.vocabulary import LABELS, STARTS
from readerkit.errors import ContentError, ContentFault
from readerkit.model import addresses
from readerkit.model.language import SPANISH, Say
from readerkit.render.html.escape import shown
from readerkit.render.html.markdown import FormulaError, line, prose, title
from readerkit.render.html.proved import Passage, Proved, marked, passages
from readerkit.render.html.quiz_page import TopicQuestions
from readerkit.render.html.words import Text, Words

if TYPE_CHECKING:  # which is made of the model, and that of these
    from readerkit.render.html.excerpt import Excerpt

STATES = {
    "reviewed": "reviewed against exactly these lines",
    "unreviewed": "not reviewed yet",
    "changed": "these lines, or those around them, changed since the review",
    "unlocked": "these lines are not in the lock",
    "floating": "in a folder, read where it stands",
    "absent": "not fetched: the place is the one that was locked",
}


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
    title: Text
    page: str
    """The section on the side-by-side page."""
    lines: tuple[tuple[str, str], ...]
    """``ddp.py:7-9`` each, and where they stand."""


@dataclass(frozen=True, slots=True)
class AlsoShown:
    """Lines elsewhere that a note shows, and what they say to it."""

    says: Text
    title: str
    """Of their upstream."""
    excerpt: Excerpt


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
    place: str
    """``layers.py:1274-1294``"""
    path: str
    first: int
    last: int
    symbol: str
    paragraphs: tuple[tuple[str, Text], ...]
    """Each with its label, if it has one."""
    marked: tuple[tuple[str, Text], ...]
    """The same, with a mark behind each proved sentence."""
    proofs: tuple[Passage, ...]
    cites: tuple[tuple[CitedWork, Text], ...]
    """Works, and the section of each."""
    starts: tuple[str, ...]
    """What it speaks of, in words."""
    conditions: tuple[tuple[str, Text], ...]
    """What it presumes: each with its place on the page of conditions."""
    always: str
    """Where what every note presumes is said; empty where this one does not."""
    also: tuple[AlsoShown, ...]
    cards: tuple[Card, ...]
    beside: tuple[SectionBeside, ...]
    seen: tuple[Seen, ...]
    asked: tuple[TopicQuestions, ...]
    """Quiz questions that lead here."""
    plays: tuple[tuple[str, str], ...]
    """Mechanisms that play the same: where, and their titles."""
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
    also: tuple[AlsoShown, ...] = (),
    beside: tuple[SectionBeside, ...] = (),
    seen: tuple[Seen, ...] = (),
    asked: tuple[TopicQuestions, ...] = (),
    plays: tuple[tuple[str, str], ...] = (),
    proofs: tuple[Proved, ...] = (),
) -> NoteView:
    """Return what a page shows of a note.

    Raises:
        ContentError: a formula in it that cannot be set.
    """
    annotation = note.annotation
    upstream = book.upstreams[annotation.upstream]
    lock = book.locks.get(upstream.name)
    presumed = book.presumed_by(annotation)
    spanish = book.translated(annotation, SPANISH)
    title, *paragraphs = _texts(annotation, book)
    told = tuple(_marked(annotation, book, proofs))
    path, first, last = note.span.path, note.span.first, note.span.last
    return NoteView(
        id=annotation.id,
        kind=annotation.kind,
        title=title[1],
        page=f"{addresses.source_page(upstream.name, path)}#{annotation.id}",
        place=addresses.lines_text(path, first, last),
        path=path,
        first=first,
        last=last,
        symbol=note.symbol,
        paragraphs=tuple(paragraphs),
        marked=told,
        proofs=passages(proofs, annotation.id, (text for _, text in told)),
        cites=tuple(cite(each, book, words) for each in annotation.references),
        starts=tuple(STARTS[each] for each in annotation.starts),
        conditions=tuple(
            (f"{addresses.CONDITIONS}#{each.id}", condition_title(each, book))
            for each in presumed
            if not each.always
        ),
        always=next(
            (f"{addresses.CONDITIONS}#{each.id}" for each in presumed if each.always),
            "",
        ),
        also=also,
        cards=tuple(card(name, book) for name in annotation.concepts),
        beside=beside,
        seen=seen,
        asked=asked,
        plays=plays,
        state=STATES[note.state],
        is_sound=note.state in ("reviewed", "floating", "absent"),
        permalink=upstream.permalink(note.span),
        commit=upstream.commit,
        blob=lock.files.get(path, "") if lock else "",
        is_translated=bool(spanish.texts),
        is_outdated=spanish.is_outdated(annotation.stamp),
        mine=annotation.mine,
    )


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


def note_title(annotation: Annotation, book: Book) -> Text:
    """Return the title of a note in both languages."""
    spanish = book.translated(annotation, SPANISH).texts
    return text(annotation.title, spanish.get("title"), title)


def _texts(annotation: Annotation, book: Book) -> list[tuple[str, Text]]:
    """Return the title of a note, then what it says, each part with its label."""
    spanish = book.translated(annotation, SPANISH).texts
    try:
        texts = [("title", note_title(annotation, book))]
        for name, label in LABELS.items():
            if own := getattr(annotation, name):
                texts.append((label, text(own, spanish.get(name), prose)))
    except FormulaError as error:
        raise ContentError(
            [annotation.place.fault(f"{annotation.id}: {error}")]
        ) from None
    return texts


def _marked(
    annotation: Annotation, book: Book, proofs: Sequence[Proved]
) -> Iterator[tuple[str, Text]]:
    """Yield what a note says, with a mark behind each proved sentence."""
    spanish = book.translated(annotation, SPANISH).texts
    for name, label in LABELS.items():
        if own := getattr(annotation, name):

            def shown(other: str, own: str = own) -> Markup:
                return marked(other, own, proofs, annotation, annotation.id)

            yield label, text(own, spanish.get(name), shown)


def text(
    english: str, spanish: str | None, render: Callable[[str], Markup] = shown
) -> Text:
    """Return what people wrote, in English and perhaps in Spanish.

    Raises:
        FormulaError: a formula that cannot be set.
    """
    own = render(english)
    try:
        return Text(own, render(spanish) if spanish else None)
    except FormulaError as error:
        raise FormulaError(f"in its translation ({SPANISH}): {error}") from None


def cite(citation: Citation, book: Book, words: Words) -> tuple[CitedWork, Text]:
    """Return the work that is cited, and the section of it."""
    work = book.references[citation.key]
    return work, words.text(partial(_section, citation, work))


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
    return text(concept.title, spanish.texts.get("title"))


def condition_title(condition: Condition, book: Book) -> Text:
    """Return the words of what notes presume."""
    spanish = book.translated(condition, SPANISH)
    return text(condition.title, spanish.texts.get("title"), line)


def mirror_title(mirror: Mirror, book: Book) -> Text:
    """Return what a mirror is called."""
    return _either(mirror.title, book.mirror_in(mirror.id, SPANISH).title, shown)


def section_title(mirror: str, index: int, book: Book) -> Text:
    """Return what a section of a mirror is called."""
    own, other = book.mirrors[mirror], book.mirror_in(mirror, SPANISH)
    title = other.sections[index].title
    return _either(own.sections[index].title, title, line)


def _either(english: str, other: str, render: Callable[[str], Markup]) -> Text:
    """Return a text of a mirror; without a translation where both are the same."""
    return text(english, other if other != english else None, render)


def card(name: str, book: Book, *, render: Callable[[str], Markup] = line) -> Card:
    """Return a concept as it is mentioned.

    Raises:
        ContentError: a formula in its summary that cannot be set.
    """
    concept = book.concepts[name]
    spanish = book.translated(concept, SPANISH)
    try:
        summary = text(concept.summary, spanish.texts.get("summary"), render)
    except FormulaError as error:
        raise ContentError([concept.place.fault(f"{name}: {error}")]) from None
    return Card(
        name,
        concept_title(name, book),
        summary,
        is_translated="summary" in spanish.texts,
        is_outdated=spanish.is_outdated(concept.stamp),
    )
