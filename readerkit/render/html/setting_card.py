"""A setting in a text: items of its estimates, and the controls that change it.

The table stands without scripts. With them its numbers are those of the page of
estimates, computed by the same translated commands once a control is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from readerkit.content.chapters import Part
from readerkit.errors import ContentError, ContentFault, ReaderkitError
from readerkit.estimate.instrument import QUESTIONS, Dials, Shipped, command_of
from readerkit.estimate.item import Estimate, Item
from readerkit.estimate.setting import asked_at, dials_of, item_of
from readerkit.model import addresses
from readerkit.render.html.estimate_words import EstimateWords, ItemTexts
from readerkit.render.html.instrument_view import controls
from readerkit.render.html.words import Text
from readerkit.wording.meant_name import choose

DIALS = "dials"


@dataclass(frozen=True, slots=True)
class Computing:
    """What a page of estimates knows by name, and the Spanish of what it says."""

    known: Shipped
    names: Mapping[str, str] = field(default_factory=dict)
    conventions: Mapping[str, str] = field(default_factory=dict)


Compute = Callable[[], Computing]
"""Reads it when a text asks for it."""
Render = Callable[[str, bool], Markup]
"""From a line of Markdown, and whether it is Spanish, to HTML."""


@dataclass(frozen=True, slots=True)
class AskedItem:
    """A row of a setting: an item of what a command says."""

    question: str
    found: Item
    """With its value."""
    about: str
    """In Markdown; what the text says that it is."""
    row: int = 0
    """Of the fence, from 1."""


@dataclass(frozen=True, slots=True)
class AskedSetting:
    """A setting as a fence asks for it, its items found."""

    at: Dials
    dials: tuple[str, ...]
    """Those that the reader may turn."""
    items: tuple[AskedItem, ...]


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item as a page shows it."""

    asked: AskedItem
    about: Text
    texts: ItemTexts


@dataclass(frozen=True, slots=True)
class SettingCard:
    """A setting with its numbers and controls."""

    rows: tuple[ItemRow, ...]
    controls: Mapping[str, Any]
    words: Mapping[str, str]
    """Every dial with its value, as an address has them."""
    commands: tuple[tuple[str, str], ...]
    """Each question, and the command line that asks the same."""
    page: str
    """Of estimates, at this setting."""


def asked_setting(part: Part, compute: Compute) -> AskedSetting:
    """Return what a fence asks for.

    Raises:
        ContentError: every row that asks for nothing, a setting that is refused.
    """
    known = compute().known
    try:
        at = dials_of(part.name.split())
    except ReaderkitError as error:
        raise part.fault(str(error)) from None
    dials: tuple[str, ...] = ()
    items: list[AskedItem] = []
    faults: list[ContentFault] = []
    asked: dict[str, list[Estimate]] = {}
    for number, row in enumerate(part.body.splitlines(), 1):
        try:
            if row.partition(":")[0].strip() == DIALS:
                dials = tuple(_dial(word) for word in row.partition(":")[2].split())
            elif row.strip():
                items.append(_item(row, number, at, known, asked))
        except ReaderkitError as error:
            faults.append(ContentFault(part.file, part.at + number, 1, str(error)))
    if not items and not faults:
        raise part.fault("a setting of no items", "", _FORM)
    if faults:
        raise ContentError(faults)
    return AskedSetting(at, dials, tuple(items))


_FORM = "rows 'memory: total = what it is'"


def _dial(word: str) -> str:
    return choose("dial", word, Dials._fields)


def _item(
    row: str, number: int, at: Dials, known: Shipped, asked: dict[str, list[Estimate]]
) -> AskedItem:
    left, sign, about = row.partition("=")
    question, colon, item = (each.strip() for each in left.partition(":"))
    if not colon or not sign or not about.strip():
        raise ReaderkitError(f"not a row of a setting: got '{row}', expected {_FORM}")
    question = choose("question of an estimate", question, QUESTIONS)
    if question not in asked:
        asked[question] = asked_at(question, at, known)
    found = item_of(asked[question], question, item)
    return AskedItem(question, found, about.strip(), number)


def setting_card(
    part: Part,
    other: Part | None,
    compute: Compute,
    phrases: Mapping[str, str],
    render: Render,
) -> SettingCard:
    """Return a setting; ``other`` is the fence in Spanish, whose rows are the same.

    Raises:
        ContentError: it asks for nothing that there is.
    """
    computing, asked = compute(), asked_setting(part, compute)
    names, conventions = computing.names, computing.conventions
    told = EstimateWords(phrases, names, conventions)
    spanish = dict(_abouts(other)) if other else {}
    rows = []
    for each in asked.items:
        [texts] = told.rows(Estimate("", (each.found,)))
        own = spanish.get(each.row)
        about = Text(render(each.about, False), render(own, True) if own else None)
        rows.append(ItemRow(each, about, texts))
    questions = dict.fromkeys(each.question for each in asked.items)
    words = _words(asked.at)
    return SettingCard(
        tuple(rows),
        _turned(controls(computing.known, names, asked.at), asked.dials),
        words,
        tuple((each, command_of(each, asked.at)) for each in questions),
        f"{addresses.ESTIMATES}#{urlencode(_said(asked.at, words))}",
    )


def _abouts(part: Part) -> Iterator[tuple[int, str]]:
    for number, row in enumerate(part.body.splitlines(), 1):
        if about := row.partition("=")[2].strip():
            yield number, about


def _words(at: Dials) -> dict[str, str]:
    """Return every dial with its value, as scripts write values."""
    return {
        name: ("" if value is None else str(value).lower())
        if not isinstance(value, str)
        else value
        for name, value in at._asdict().items()
    }


def _said(at: Dials, words: Mapping[str, str]) -> dict[str, str]:
    """Return what an address of the page of estimates says of a setting."""
    usual = Dials._field_defaults
    return {
        name: word
        for name, word in words.items()
        if name == "model" or getattr(at, name) != usual[name]
    }


def _turned(every: Mapping[str, Any], dials: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the controls of some dials, each kind in the order of the page."""
    return {
        "choices": [each for each in every["choices"] if each.name in dials],
        "numbers": [each for each in every["numbers"] if each[0] in dials],
        "flags": [each for each in every["flags"] if each[0] in dials],
    }
