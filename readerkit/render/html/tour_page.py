"""The page of a tour: its stops in order, each with the sentence that leads there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from readerkit.content.claims import Claimed
from readerkit.content.tours import Tour
from readerkit.model import addresses
from readerkit.model.language import SPANISH
from readerkit.render.html.escape import shown
from readerkit.render.html.excerpt import Excerpt, excerpt
from readerkit.render.html.file_page import proofs_of, rights_of, view
from readerkit.render.html.markdown import prose
from readerkit.render.html.notes import NoteView, text
from readerkit.render.html.proved import Proved, marked, passages
from readerkit.render.html.related_pages import Readable
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.words import Text


@dataclass(frozen=True, slots=True)
class ShownStop:
    """A note on a tour, with its lines and the sentence that leads to it."""

    number: int
    says: Text | None
    note: NoteView
    lines: Excerpt


def tour_title(model: SiteModel, tour: Tour) -> Text:
    """Return what a tour is called."""
    other = model.book.tour_in(tour.id, SPANISH).title
    return text(tour.title, other if other != tour.title else None, shown)


def tour_lines(model: SiteModel) -> list[tuple[str, Text, int]]:
    """Return the page, the title and the number of stops of each tour."""
    return [
        (addresses.tour_page(tour.id), tour_title(model, tour), len(tour.stops))
        for tour in model.book.tours.values()
    ]


def tour_stops(model: SiteModel) -> list[Readable]:
    """Return the page of each tour, about what its notes are about."""
    found = []
    for tour in model.book.tours.values():
        notes = [model.book.annotations[stop.note] for stop in tour.stops]
        about = Counter(concept for note in notes for concept in note.concepts)
        page = addresses.tour_page(tour.id)
        found.append(Readable(page, tour_title(model, tour), "tour", about))
    return found


def tour_page(model: SiteModel, tour: Tour) -> Context:
    """Return the page of a tour."""
    proofs = proofs_of(model, tour.id)
    stops = [*_stops(model, tour, proofs)]
    other = model.book.tour_in(tour.id, SPANISH)
    about = _said(tour, tour, (tour.about, other.about), proofs)
    texts = (about, *(stop.says for stop in stops if stop.says))
    notes = (model.book.annotations[stop.note] for stop in tour.stops)
    return {
        "title": tour_title(model, tour),
        "name": tour.id,
        "about": about,
        "state": _state(model, tour),
        "stops": stops,
        "proofs": passages(proofs, tour.id, texts),
        "rights": rights_of(model, (note.upstream for note in notes)),
    }


def _state(model: SiteModel, tour: Tour) -> str:
    said = model.book.tour_translations.get(SPANISH, {}).get(tour.id)
    if said is None:
        return "untold"
    return "outdated" if said.is_outdated(tour.stamp) else "told"


def _stops(
    model: SiteModel, tour: Tour, proofs: Sequence[Proved]
) -> Iterator[ShownStop]:
    address = addresses.tour_page(tour.id)
    others = model.book.tour_in(tour.id, SPANISH).stops
    for number, (stop, other) in enumerate(zip(tour.stops, others, strict=True), 1):
        note = model.notes[stop.note]
        upstream = note.annotation.upstream
        says = _said(tour, stop, (stop.says, other.says), proofs)
        yield ShownStop(
            number,
            says if stop.says else None,
            view(model, stop.note),
            excerpt(model, upstream, note.span, address),
        )


def _said(
    tour: Tour, part: Claimed, both: tuple[str, str], proofs: Sequence[Proved]
) -> Text:
    """Return a text in both languages, with marks behind sentences that are proved."""
    english, spanish = both

    def render(said: str) -> Markup:
        return marked(said, english, proofs, part, tour.id, prose)

    return text(english, spanish if spanish != english else None, render)
