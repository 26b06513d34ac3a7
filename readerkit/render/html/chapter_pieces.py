"""The pieces that a chapter is made of, and those that need nothing but its text."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from readerkit.content.chapters import Part
from readerkit.content.diagrams import Diagram
from readerkit.errors import ContentError, ContentFault
from readerkit.render.html.computed import Computed, Origin
from readerkit.render.html.excerpt import Excerpt
from readerkit.render.html.fences import MiniCard, QuestionCard, TourCard
from readerkit.render.html.markdown import FormulaError, prose
from readerkit.render.html.notes import NoteView, text
from readerkit.render.html.player import Player
from readerkit.render.html.proved import Passage
from readerkit.render.html.schedule_chart import Chart, schedule_chart
from readerkit.render.html.schedule_play import SchedulePlayer
from readerkit.render.html.setting_card import SettingCard
from readerkit.render.html.words import Text, Words


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
    question: QuestionCard | None = None
    mini: MiniCard | None = None
    tour: TourCard | None = None
    setting: SettingCard | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A text under its title, in one language or in both."""

    title: Text
    pieces: tuple[Piece, ...]
    is_translated: bool
    proofs: tuple[Passage, ...] = ()
    origins: tuple[Origin, ...] = ()
    """What its numbers were computed from."""


def rendered(part: Part, computed: Computed, *, spanish: bool = False) -> Markup:
    """Return prose with its numbers as HTML.

    Raises:
        ContentError: a number without a value, a formula that cannot be set.
    """
    check_numbers(part, computed)

    def render(body: str) -> Markup:
        return _prose(part, body)

    return computed.filled(part.body, render, spanish=spanish)


def check_numbers(part: Part, computed: Computed) -> None:
    """Refuse a part with a number that has no value.

    Raises:
        ContentError: each such number, at its line.
    """
    if faults := [*computed.faults(part)]:
        raise ContentError(faults)


def _prose(part: Part, body: str) -> Markup:
    try:
        return prose(body)
    except FormulaError as error:
        before = body[: max(body.find(f"${error.latex}"), 0)]
        line_in_part, column = before.count("\n"), len(before) - before.rfind("\n")
        where = ContentFault(part.file, part.at + line_in_part, column, str(error))
        raise ContentError([where]) from None


def schedule(words: Words, part: Part) -> Chart:
    """Return the chart of a schedule that a fence names."""
    name, *sizes = part.name.split() or [""]
    if len(sizes) not in (2, 3) or not all(map(str.isdecimal, sizes)):
        expected = "a schedule, ranks, microbatches and perhaps chunks"
        raise part.fault("not a schedule", f"'{part.name}'", expected)
    try:
        ranks, microbatches, chunks = (*map(int, sizes), 1)[:3]
        return schedule_chart(words, name, ranks, microbatches, chunks)
    except ValueError as error:
        raise part.fault(f"schedule: {error}", part.name) from None


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
