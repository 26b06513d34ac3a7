"""A chapter: Markdown, and between it notes with their lines, sums, drawings.

Between fences stands what is resolved when the site is built: ``note ID``, ``diagram
NAME``, ``schedule NAME RANKS MICROBATCHES [CHUNKS]``, ``reckon`` with one sum a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from mini_impls.schedules import get_bubble, get_orders, get_timeline
from readerkit.diagrams import Diagram
from readerkit.errors import ContentError, Fault
from readerkit.render.html import addresses
from readerkit.render.html.charts import Cell, gantt
from readerkit.render.html.escape import shown
from readerkit.render.html.excerpt import Excerpt, excerpt
from readerkit.render.html.file_page import view
from readerkit.render.html.markdown import FormulaError, line, prose
from readerkit.render.html.notes import NoteView
from readerkit.render.html.quantity import number, size
from readerkit.render.html.shelf import Shelf
from readerkit.render.html.words import Text

_FENCE = re.compile(
    r"^```(note|diagram|schedule|reckon)\b *(.*)\n((?s:.*?))^```$", re.M
)
_FACTOR = re.compile(r"([0-9.]+(?:e[0-9]+)?)\s*(.*)")
_NOTHING = Markup("")


@dataclass(frozen=True, slots=True)
class Sum:
    """One line of arithmetic with its result."""

    factors: Markup
    result: Markup
    about: Markup


@dataclass(frozen=True, slots=True)
class Drawing:
    """A diagram as two images, of which a theme shows one."""

    light: str
    dark: str
    title: Markup
    alternative: Markup


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a chapter: exactly one of its fields is filled."""

    text: Markup = _NOTHING
    note: NoteView | None = None
    lines: Excerpt | None = None
    chart: Markup = _NOTHING
    drawing: Drawing | None = None
    sums: tuple[Sum, ...] = ()


@dataclass(frozen=True, slots=True)
class ChapterPage:
    """A chapter in one language or in both."""

    address: str
    title: Text
    pieces: tuple[Piece, ...]
    spanish: tuple[Piece, ...]
    previous: str
    next: str


@dataclass(frozen=True, slots=True)
class Script:
    """The text of a chapter, as it was read."""

    name: str
    """``why-distributed``"""
    file: str
    text: str
    spanish: str = ""


def chapter_page(
    shelf: Shelf,
    script: Script,
    diagrams: Mapping[str, Diagram],
    around: tuple[str, str],
) -> ChapterPage:
    """Return the page of a chapter; ``around`` are the addresses before and after it.

    Raises:
        ContentError: something that a fence names and nothing is called.
    """
    address = addresses.chapter_page(script.name)
    english, spanish = pieces(shelf, script, diagrams, address)
    return ChapterPage(address, chapter_title(script), english, spanish, *around)


def pieces(
    shelf: Shelf, script: Script, diagrams: Mapping[str, Diagram], address: str
) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return what a text holds under its title, in English and perhaps in Spanish.

    Raises:
        ContentError: something that a fence names and nothing is called.
    """
    writer = _Writer(shelf, script, diagrams, address)
    return tuple(writer.pieces(script.text)), tuple(writer.pieces(script.spanish))


def chapter_title(script: Script) -> Text:
    """Return what a chapter is called: its first line, without the mark before it."""
    english, *spanish = (
        line(text.partition("\n")[0].removeprefix("# "))
        for text in (script.text, script.spanish)
        if text
    )
    return Text(english, spanish[0] if spanish else None)


@dataclass(frozen=True, slots=True)
class _Writer:
    shelf: Shelf
    script: Script
    diagrams: Mapping[str, Diagram]
    address: str

    def pieces(self, text: str) -> Iterator[Piece]:
        reached = text.index("\n") if "\n" in text else len(text)
        for match in _FENCE.finditer(text):
            yield from self._prose(text, reached, match.start())
            at = text.count("\n", 0, match.start()) + 1
            yield self._fenced(match[1], match[2].strip(), match[3], at)
            reached = match.end()
        yield from self._prose(text, reached, len(text))

    def _prose(self, text: str, start: int, end: int) -> Iterator[Piece]:
        if text[start:end].strip():
            try:
                yield Piece(text=prose(text[start:end]))
            except FormulaError as error:
                raise self._fault(text.count("\n", 0, start) + 1, str(error)) from None

    def _fenced(self, kind: str, name: str, body: str, at: int) -> Piece:
        if kind == "note":
            if name not in self.shelf.notes:
                raise self._fault(at, "unknown note", name)
            note = self.shelf.notes[name]
            upstream = note.annotation.upstream
            lines = excerpt(self.shelf, upstream, note.span, self.address)
            return Piece(note=view(self.shelf, name), lines=lines)
        if kind == "diagram":
            if name not in self.diagrams:
                raise self._fault(at, "unknown diagram", name)
            return Piece(drawing=drawing(self.diagrams[name]))
        if kind == "schedule":
            return Piece(chart=self._schedule(name, at))
        return Piece(sums=tuple(self._sum(row, at) for row in body.splitlines()))

    def _schedule(self, words: str, at: int) -> Markup:
        name, *sizes = words.split()
        try:
            ranks, microbatches, chunks = (*map(int, sizes), 1)[:3]
            orders = get_orders(name, ranks, microbatches, chunks)
        except ValueError as error:
            raise self._fault(at, f"schedule: {error}", words) from None
        timeline = get_timeline(orders)
        cells = []
        for step, (start, end) in sorted(timeline.items(), key=lambda item: item[1]):
            chunk, rank = divmod(step.stage, ranks)
            text = f"{step.kind}{step.microbatch_id}"
            cells.append(Cell(rank, start, end, text, step.kind, chunk))
        ideal, total = get_bubble(timeline, ranks)
        what = f"{chunks} chunks" if chunks > 1 else "one chunk"
        title = (
            f"{name}: {ranks} ranks, {microbatches} microbatches, {what} a rank; "
            f"bubble {float(ideal):.2%} of ideal, {float(total):.2%} of total"
        )
        rows = [f"rank {rank}" for rank in range(ranks)]
        figure = Markup("<figure>{}<figcaption>{}</figcaption></figure>")
        chart = gantt(f"schedule-{'-'.join(words.split())}", title, rows, cells)
        return figure.format(chart, shown(title))

    def _sum(self, row: str, at: int) -> Sum:
        left, _, about = row.partition("=")
        product, units = 1.0, []
        for factor in left.split("*"):
            match = _FACTOR.fullmatch(factor.strip())
            if not match:
                raise self._fault(at, "not a product of numbers with units", row)
            product *= float(match[1])
            units.append(match[2].strip())
        is_bytes = any(unit.startswith("B/") for unit in units)
        result = size(product) if is_bytes else f"{product:.3g} {units[0]}"
        factors = " × ".join(
            f"{number(float(m[1]))} {m[2]}" if float(m[1]) < 1e6 else f"{m[1]} {m[2]}"
            for m in (_FACTOR.match(f.strip()) for f in left.split("*"))
            if m
        )
        return Sum(shown(factors), shown(result), line(about))

    def _fault(self, at: int, what: str, got: str = "") -> ContentError:
        return ContentError([Fault(self.script.file, at, 1, what, got)])


def drawing(diagram: Diagram) -> Drawing:
    """Return a diagram as a page shows it."""
    return Drawing(
        diagram_file(diagram.name, "light"),
        diagram_file(diagram.name, "dark"),
        shown(diagram.title),
        shown(diagram.alternative),
    )


def diagram_file(name: str, theme: str) -> str:
    """Return where the image of a diagram stands."""
    return f"diagrams/{name}.{theme}.svg"
