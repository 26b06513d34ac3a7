"""Questions and what is told about them, as a page shows them: from JSON values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from readerkit.anchors import Span
from readerkit.render.html import addresses
from readerkit.render.html.escape import shown
from readerkit.render.html.excerpt import Excerpt, excerpt
from readerkit.render.html.site_model import SiteModel

Values = Mapping[str, Any]
"""What the quiz says of a question, an answer or a result."""

_CODE = re.compile(r"`([^`]+)`")
_MAX_SHOWN_LINES = 8
"""Of the code behind a mistake; the linked page has all of it."""


@dataclass(frozen=True, slots=True)
class OptionView:
    """An option, an item to order, or one side of a match."""

    label: Markup
    text: Markup


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question before it is answered."""

    id: str
    kind: str
    topic: Markup
    difficulty: int
    dots: str
    """The same, drawn: ``●●○``."""
    prompt: Markup
    how: Markup
    options: tuple[OptionView, ...]
    is_several: bool
    lists: tuple[tuple[OptionView, ...], ...]
    """What is to be ordered, or both sides of a match."""
    columns: Markup
    rows: tuple[Markup, ...]
    rubric: tuple[Markup, ...]
    search: PlaceView | None
    """The code in which a line is to be found, without links that tell where."""


@dataclass(frozen=True, slots=True)
class PlaceView:
    """Lines that a question leads to."""

    text: Markup
    page: str
    """Of this site; empty where it does not show the file."""
    title: Markup
    """Of the note on them; empty where there is none."""
    code: Excerpt | None = None


@dataclass(frozen=True, slots=True)
class CitedView:
    """A paper or page that a question leads to."""

    text: Markup
    address: str


@dataclass(frozen=True, slots=True)
class Solution:
    """What is told once a question is done."""

    lines: tuple[Markup, ...]
    explanation: Markup
    places: tuple[PlaceView, ...]
    works: tuple[CitedView, ...]


@dataclass(frozen=True, slots=True)
class RemarkView:
    """One thing said about an answer, with the lines that bear it out."""

    text: Markup
    place: PlaceView | None


def worded(text: str) -> Markup:
    """Return a text of the quiz as markup: what stands in backquotes is code.

    >>> worded("`a<b` is less")
    Markup('<code>a&lt;b</code> is less')
    """
    pieces = _CODE.split(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(shown(piece)) if index % 2 else shown(piece)
        for index, piece in enumerate(pieces)
    )


def question_view(model: SiteModel, values: Values, address: str) -> QuestionView:
    """Return what the page at an address shows of a question."""
    search = values.get("search")
    lists = [values[key] for key in ("items", "left", "right") if key in values]
    return QuestionView(
        id=values["id"],
        kind=values["kind"],
        topic=shown(values["topic"].replace("_", " ")),
        difficulty=values["difficulty"],
        dots="●" * values["difficulty"] + "○" * (3 - values["difficulty"]),
        prompt=worded(values["prompt"]),
        how=shown(values["how"]),
        options=_entries(values.get("options", ())),
        is_several=values.get("several", False),
        lists=tuple(map(_entries, lists)),
        columns=shown(", ".join(values.get("columns", ()))),
        rows=tuple(map(shown, values.get("rows", ()))),
        rubric=tuple(map(worded, values.get("rubric", ()))),
        search=search and place_view(model, search, address, lines=None),
    )


def solution_view(model: SiteModel, values: Values, address: str) -> Solution:
    """Return what the page at an address tells of a question that is done."""
    return Solution(
        lines=tuple(map(worded, values["solution"].split("\n"))),
        explanation=worded(values["explanation"]),
        places=tuple(place_view(model, each, address) for each in values["links"]),
        works=tuple(_cited(model, each) for each in values["references"]),
    )


def remark_views(
    model: SiteModel, remarks: Iterable[Values], address: str
) -> tuple[RemarkView, ...]:
    """Return what is said about an answer, a few of the lines beside each."""
    return tuple(
        RemarkView(
            worded(each["text"]),
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
    return PlaceView(shown(str(span)), page, shown(place.get("title", "")), code)


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


def _entries(entries: Iterable[Values]) -> tuple[OptionView, ...]:
    return tuple(OptionView(shown(e["label"]), worded(e["text"])) for e in entries)


def _cited(model: SiteModel, work: Values) -> CitedView:
    section = f", {work['section']}" if work["section"] else ""
    text = f"{work['authors']} {work['year']}, {work['title']}{section}"
    key = work["key"]
    is_ours = key in model.book.references
    return CitedView(shown(text), f"{addresses.REFERENCES}#{key}" if is_ours else "")
