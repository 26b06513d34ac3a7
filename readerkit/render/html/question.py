"""Questions and what is told about them, as a page shows them: from JSON values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from readerkit.anchors import Span
from readerkit.render.html import addresses
from readerkit.render.html.excerpt import Excerpt, excerpt
from readerkit.render.html.site_model import SiteModel

Values = Mapping[str, Any]
"""What the quiz says of a question, an answer or a result."""

_NOTHING = dict.fromkeys(
    ("options", "several", "items", "left", "right", "columns", "rows", "rubric"), ()
)
"""What not every kind of question has."""
_MAX_SHOWN_LINES = 8
"""Of the code behind a mistake; the linked page has all of it."""


@dataclass(frozen=True, slots=True)
class PlaceView:
    """Lines that a question leads to."""

    text: str
    page: str
    """Of this site; empty where it does not show the file."""
    title: str
    """Of the note on them; empty where there is none."""
    code: Excerpt | None = None


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question before it is answered."""

    asked: Values
    """Its texts as the quiz says them."""
    search: PlaceView | None
    """The code in which a line is to be found, without links that tell where."""


@dataclass(frozen=True, slots=True)
class Solution:
    """What is told once a question is done."""

    told: Values
    places: tuple[PlaceView, ...]
    works: tuple[tuple[Values, bool], ...]
    """What it cites, and whether the site has that in its list."""


@dataclass(frozen=True, slots=True)
class RemarkView:
    """One thing said about an answer, with the lines that bear it out."""

    text: str
    place: PlaceView | None


def question_view(model: SiteModel, values: Values, address: str) -> QuestionView:
    """Return what the page at an address shows of a question."""
    search = values.get("search")
    found = place_view(model, search, address, lines=None) if search else None
    return QuestionView({**_NOTHING, **values}, found)


def solution_view(model: SiteModel, values: Values, address: str) -> Solution:
    """Return what the page at an address tells of a question that is done."""
    places = (place_view(model, each, address) for each in values["links"])
    known = model.book.references
    works = ((each, each["key"] in known) for each in values["references"])
    return Solution(values, tuple(places), tuple(works))


def remark_views(
    model: SiteModel, remarks: Iterable[Values], address: str
) -> tuple[RemarkView, ...]:
    """Return what is said about an answer, a few of the lines beside each."""
    return tuple(
        RemarkView(
            each["text"],
            each["place"]
            and place_view(model, each["place"], address, lines=_MAX_SHOWN_LINES),
        )
        for each in remarks
    )


def place_view(
    model: SiteModel, place: Values, address: str, *, lines: int | None = 0
) -> PlaceView:
    """Return lines that the quiz names, with so many of them; all where None."""
    upstream, note = place["upstream"], place.get("note", "")
    span = Span(place["path"], place["first"], place["last"])
    page, code = "", None
    if _is_shown(model, place):
        page = f"{addresses.source_page(upstream, span.path)}#"
        page += note if note in model.notes else f"L{span.first}-L{span.last}"
        if lines != 0:
            code = excerpt(
                model, upstream, span, address, limit=lines, is_linked=bool(lines)
            )
    return PlaceView(str(span), page, place.get("title", ""), code)


def _is_shown(model: SiteModel, place: Values) -> bool:
    """Whether the site shows these very lines: the bytes that the quiz was locked at.

    The minis have no blob: they are read as they stand.
    """
    sheet = model.sheets.get((place["upstream"], place["path"]))
    lock = model.book.locks.get(place["upstream"])
    same = not place["blob"] or (
        lock is not None and lock.files.get(place["path"]) == place["blob"]
    )
    return sheet is not None and same and place["last"] <= len(sheet.drawn.lines)
