"""A chapter: Markdown, and between it notes with their lines, sums, drawings.

A Spanish text shows the same between its words, so a page holds each of these once.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest

from markupsafe import Markup

from readerkit.content.diagrams import Diagram
from readerkit.content.scripts import FACTOR, Part, Script, parts_of
from readerkit.errors import ContentError, ContentFault
from readerkit.model import addresses
from readerkit.render.html.escape import shown
from readerkit.render.html.excerpt import Excerpt, excerpt
from readerkit.render.html.file_page import proofs_of, rights_of, view
from readerkit.render.html.markdown import FormulaError, line, prose, title
from readerkit.render.html.mechanism_list import (
    MECHANISMS,
    SCHEDULES,
    mechanism_player,
)
from readerkit.render.html.notes import NoteView, text
from readerkit.render.html.player import Player
from readerkit.render.html.proved import Passage, Proved, marked, passages
from readerkit.render.html.schedule_chart import Chart, schedule_chart
from readerkit.render.html.schedule_play import SchedulePlayer
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.words import Text, Words
from readerkit.wording.numbers import format_bytes, format_number


@dataclass(frozen=True, slots=True)
class WorkedSum:
    """One line of arithmetic with its result."""

    factors: Text
    result: str
    about: Text


@dataclass(frozen=True, slots=True)
class Drawing:
    """A diagram as two images, of which a theme shows one."""

    light: str
    dark: str
    alternative: str
    caption: Text
    spanish: Drawing | None = None
    is_outdated: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a chapter: exactly one of its fields is filled."""

    text: Text | None = None
    note: NoteView | None = None
    lines: Excerpt | None = None
    chart: Chart | None = None
    drawing: Drawing | None = None
    player: Player | SchedulePlayer | None = None
    sums: tuple[WorkedSum, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """A text under its title, in one language or in both."""

    title: Text
    pieces: tuple[Piece, ...]
    is_translated: bool
    proofs: tuple[Passage, ...] = ()


def chapter_page(
    model: SiteModel, script: Script, diagrams: Mapping[str, Diagram]
) -> Context:
    """Return the page of a chapter.

    Raises:
        ContentError: something that a fence names and nothing is called.
    """
    told = chapter_text(model, script, diagrams, addresses.chapter_page(script.name))
    return {
        "title": told.title,
        "name": script.name,
        "text": told,
        "rights": rights_of(model, upstreams_in(told)),
    }


def chapter_text(
    model: SiteModel, script: Script, diagrams: Mapping[str, Diagram], address: str
) -> Written:
    """Return a chapter, or a text of a lab, for the page at an address.

    Raises:
        ContentError: something that a fence names and nothing is called.
    """
    told = tuple(pieces(model, script, diagrams, address))
    texts = (piece.text for piece in told if piece.text)
    proofs = passages(proofs_of(model, script.name), script.name, texts)
    return Written(chapter_title(script), told, bool(script.spanish), proofs)


def pieces(
    model: SiteModel, script: Script, diagrams: Mapping[str, Diagram], address: str
) -> Iterator[Piece]:
    """Yield what a text holds under its title, in English and perhaps in Spanish.

    Raises:
        ContentError: something that a fence names and nothing is called; a Spanish text
            that shows something else.
    """
    proofs = proofs_of(model, script.name)
    writer = _ChapterWriter(model, diagrams, address, script.name, proofs)
    english = list(parts_of(script.text, script.file))
    spanish = []
    if script.spanish:
        spanish = list(parts_of(script.spanish, script.spanish_file))
        _check_equal(english, spanish)
    for part, other in zip_longest(english, spanish):
        yield from writer.pieces(part, other)


def check_script(
    script: Script, notes: Container[str], diagrams: Container[str]
) -> Iterator[ContentFault]:
    """Yield what no page can be made of; the notes that it may show are given."""
    english = list(parts_of(script.text, script.file))
    spanish = list(parts_of(script.spanish, script.spanish_file))
    checks = [partial(_check, part, notes, diagrams) for part in (*english, *spanish)]
    if script.spanish:
        checks.append(partial(_check_equal, english, spanish))
    for check in checks:
        try:
            check()
        except ContentError as error:
            yield from error.faults


def upstreams_in(*texts: Written) -> Iterator[str]:
    """Yield the upstream of each excerpt."""
    pieces = (piece for text in texts for piece in text.pieces)
    return (piece.lines.upstream for piece in pieces if piece.lines)


def chapter_title(script: Script) -> Text:
    """Return what a chapter is called: its first line, without the mark before it."""
    english, *spanish = (
        title(text.partition("\n")[0].removeprefix("# "))
        for text in (script.text, script.spanish)
        if text
    )
    return Text(english, spanish[0] if spanish else None)


def _check_equal(english: list[Part], spanish: list[Part]) -> None:
    for ours, theirs in zip_longest(english[1::2], spanish[1::2]):
        expected = f"'{ours.shows}'" if ours else "the end"
        if theirs is None:
            raise spanish[-1].fault("the English text shows more", "", expected)
        if ours is None or ours.shows != theirs.shows:
            what = "not what the English text shows here"
            raise theirs.fault(what, f"'{theirs.shows}'", expected)


def _check(part: Part, notes: Container[str], diagrams: Container[str]) -> None:
    if part.kind == "note":
        _check_known(part, notes)
    elif part.kind == "diagram":
        _check_known(part, diagrams)
    elif part.kind == "mechanism":
        _check_known(part, MECHANISMS)
    elif part.kind == "schedule":
        _schedule(Words(), part)
    elif part.kind:
        for row in part.body.splitlines():
            _reckoned(part, row)
    else:
        _prose(part)


def _check_known(part: Part, names: Container[str]) -> None:
    if part.name not in names:
        raise part.fault(f"unknown {part.kind}", part.name)


_FILE_NAMED = re.compile(r'(?<!">)<code>([\w./-]+\.py)</code>')
"""A file's path in prose, but for one that leads somewhere already."""


@dataclass(frozen=True, slots=True)
class _ChapterWriter:
    model: SiteModel
    diagrams: Mapping[str, Diagram]
    address: str
    name: str
    proofs: tuple[Proved, ...]

    def pieces(self, part: Part, other: Part | None) -> Iterator[Piece]:
        """Yield the piece of a part, ``other`` being the same in Spanish."""
        if part.kind:
            yield self._fenced(part, other)
        elif part.body.strip() or (other and other.body.strip()):
            spanish = self._marked(part, other) if other else None
            yield Piece(text=Text(self._marked(part, part), spanish))

    def _marked(self, english: Part, part: Part) -> Markup:
        """Return prose with a mark behind each proved sentence."""

        def render(body: str) -> Markup:
            return self._with_files(_prose(replace(part, body=body)))

        how = (self.proofs, None, self.name, render)
        return marked(part.body, english.body, *how)

    def _with_files(self, told: Markup) -> Markup:
        """Return prose in which a file that has a page leads to it."""

        def link(found: re.Match[str]) -> str:
            those = [file for file in self.model.sheets if file[1] == found[1]]
            if len(those) != 1:
                return found[0]
            page = addresses.href(addresses.source_page(*those[0]))
            return f'<a href="{addresses.to_page(page, self.address)}">{found[0]}</a>'

        return Markup(_FILE_NAMED.sub(link, told))

    def _fenced(self, part: Part, other: Part | None) -> Piece:
        name = part.name
        if part.kind == "note":
            _check_known(part, self.model.notes)
            note = self.model.notes[name]
            upstream = note.annotation.upstream
            lines = excerpt(self.model, upstream, note.span, self.address)
            return Piece(note=view(self.model, name), lines=lines)
        if part.kind == "diagram":
            _check_known(part, self.diagrams)
            return Piece(drawing=drawing(self.diagrams[name]))
        if part.kind == "mechanism":
            if name != SCHEDULES:
                _check_known(part, self.model.played)
            return Piece(player=mechanism_player(self.model, name))
        if part.kind == "schedule":
            return Piece(chart=_schedule(self.model.words, part))
        rows = part.body.splitlines()
        others = other.body.splitlines() if other else [None] * len(rows)
        return Piece(
            sums=tuple(_sum(part, *both) for both in zip(rows, others, strict=True))
        )


def _prose(part: Part) -> Markup:
    try:
        return prose(part.body)
    except FormulaError as error:
        before = part.body[: max(part.body.find(f"${error.latex}"), 0)]
        line_in_part, column = before.count("\n"), len(before) - before.rfind("\n")
        where = ContentFault(part.file, part.at + line_in_part, column, str(error))
        raise ContentError([where]) from None


def _schedule(words: Words, part: Part) -> Chart:
    name, *sizes = part.name.split() or [""]
    if len(sizes) not in (2, 3) or not all(map(str.isdecimal, sizes)):
        expected = "a schedule, ranks, microbatches and perhaps chunks"
        raise part.fault("not a schedule", f"'{part.name}'", expected)
    try:
        ranks, microbatches, chunks = (*map(int, sizes), 1)[:3]
        return schedule_chart(words, name, ranks, microbatches, chunks)
    except ValueError as error:
        raise part.fault(f"schedule: {error}", part.name) from None


def _sum(part: Part, row: str, spanish: str | None) -> WorkedSum:
    factors, result, about = _reckoned(part, row)
    if spanish is None:
        return WorkedSum(Text(factors), result, Text(about))
    others, _, told = _reckoned(part, spanish)
    return WorkedSum(Text(factors, others), result, Text(about, told))


def _reckoned(part: Part, row: str) -> tuple[Markup, str, Markup]:
    """Return a product as it is read, its result, and what it is of."""
    left, _, about = row.partition("=")
    product, units, factors = 1.0, [], []
    for factor in left.split("*"):
        match = FACTOR.fullmatch(factor.strip())
        if not match:
            expected = "7e9 parameters * 2 B/parameter = what it is"
            raise part.fault("not a product of numbers with units", row, expected)
        value, unit = float(match[1]), (match[2] or "").strip()
        product *= value
        units.append(unit)
        factors.append(f"{format_number(value) if value < 1e6 else match[1]} {unit}")
    is_bytes = any(unit.startswith("B/") for unit in units)
    result = format_bytes(product) if is_bytes else f"{product:.3g} {units[0]}"
    return shown(" × ".join(factors)), result, line(about)


def drawing(diagram: Diagram) -> Drawing:
    """Return a diagram as a page shows it."""
    spanish = diagram.spanish
    return Drawing(
        diagram_file(diagram.name, "light"),
        diagram_file(diagram.name, "dark"),
        diagram.alternative,
        text(diagram.title, spanish.title if spanish else None),
        drawing(spanish) if spanish else None,
        diagram.is_outdated,
    )


def diagram_file(name: str, theme: str) -> str:
    """Return where the image of a diagram stands."""
    return f"diagrams/{name}.{theme}.svg"
