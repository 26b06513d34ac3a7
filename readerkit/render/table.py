"""The table of notes: plain text, so that it costs less to show than to resolve."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

import click

from readerkit.content.resolved_notes import Note
from readerkit.model.language import Say, english
from readerkit.render.terminal_safe import visible_line
from readerkit.wording.next_command import typed

_MARKS = {
    "reviewed": " ",
    "unreviewed": "?",
    "changed": "!",
    "unlocked": "*",
    "floating": " ",
    "absent": " ",
}
_COLORS = {"citation": "cyan", "note": "green", "pitfall": "yellow"}
KIND_WIDTH = 8
GAP = 2
LEAST_FOLDED = {"symbol": 24, "title": 24, "mini": 10}
"""Narrower than these, columns are harder to read than lines one below another."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A note in words, each on one line."""

    mark: str
    id: str
    kind: str
    symbol: str
    path: str
    lines: str
    title: str
    mini: str
    color: str | None = None

    @classmethod
    def of(cls, note: Note, say: Say = english) -> _Row:
        return cls(
            _MARKS[note.state],
            note.annotation.id,
            say(note.annotation.kind),
            visible_line(note.symbol),
            visible_line(note.span.path),
            f"{note.span.first}-{note.span.last}",
            visible_line(note.annotation.title),
            visible_line(", ".join(note.minis)) or "-",
            _COLORS[note.annotation.kind],
        )


def note_rows(notes: Iterable[Note]) -> Iterator[str]:
    """Yield a line for each note, its fields parted by tabs: for a pipe.

    The id, the kind, the whole place, the symbol, the title, the minis, the state.
    """
    for note in notes:
        row = _Row.of(note)
        place = f"{row.path}:{row.lines}"
        fields = (row.id, row.kind, place, row.symbol, row.title, row.mini, note.state)
        yield "\t".join(fields)


def note_table(notes: Sequence[Note], width: int, say: Say = english) -> str:
    """Return the notes grouped by file, for a terminal.

    The file is named once, above its notes: in columns, folded where ``width`` asks for
    it, or one below another where it leaves no room for columns.
    """
    rows = [_Row.of(note, say) for note in notes]
    if not rows:
        return ""
    room = _column_widths(rows, width)
    if room is None:
        return _blocks(rows, _stacked(rows, width), width)
    ids = _widest(rows, "id")
    kind, symbol, lines, title, mini = map(
        say, ("kind", "symbol", "lines", "title", "mini")
    )
    head = _Row(" ", "id", kind, symbol, "", lines, title, mini)
    titles = _in_columns(head, ids, _widest(rows, "lines"), room)
    cells = ("\n".join(each) for each in _table(rows, ids, room))
    body = _blocks(rows, cells, width)
    return click.style("\n".join(titles), dim=True) + "\n" + body


def _widest(rows: Iterable[_Row], column: str) -> int:
    return max(len(getattr(row, column)) for row in rows)


def _blocks(rows: Sequence[_Row], texts: Iterable[str], width: int) -> str:
    """Return the texts of rows under the path of their file."""
    blocks = []
    for path, group in groupby(
        zip(rows, texts, strict=True), key=lambda pair: pair[0].path
    ):
        head = (click.style(part, bold=True) for part in _fold(path, width, "/"))
        lines = [*head, *(text for _, text in group)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _kind(kind: str, color: str | None) -> str:
    return click.style(f"{kind:{KIND_WIDTH}}", fg=color)


def _column_widths(rows: Sequence[_Row], width: int) -> dict[str, int] | None:
    """Return how wide the columns that can be folded are; None where too narrow."""
    fixed = 2 + _widest(rows, "id") + KIND_WIDTH + _widest(rows, "lines") + 5 * GAP
    widths = {
        name: min(max(_widest(rows, name), len(name)), least)
        for name, least in LEAST_FOLDED.items()
    }
    spare = width - fixed - sum(widths.values())
    if spare < 0:
        return None
    # First for most of the rows, then for the longest.
    for share in (0.8, 1):
        wanted = {name: _length(rows, name, share) for name in widths}
        while spare and any(widths[name] < wanted[name] for name in widths):
            name = max(widths, key=lambda each: wanted[each] / widths[each])
            widths[name] += 1
            spare -= 1
    return widths


def _length(rows: Sequence[_Row], column: str, share: float) -> int:
    """Return how wide a column is that shows this share of its cells unfolded."""
    lengths = sorted(len(getattr(row, column)) for row in rows)
    return lengths[math.ceil(share * len(lengths)) - 1]


def _table(rows: Sequence[_Row], ids: int, room: dict[str, int]) -> Iterator[list[str]]:
    lines = _widest(rows, "lines")
    for row in rows:
        yield _in_columns(row, ids, lines, room)


def _in_columns(row: _Row, ids: int, lines: int, room: dict[str, int]) -> list[str]:
    """Return the lines of one row: more than one where a cell is folded."""
    gap = " " * GAP
    cells = [
        textwrap.wrap(f"{row.mark} {row.id}", ids + 2, drop_whitespace=False),
        [row.kind],
        _fold(row.symbol, room["symbol"]),
        [row.lines],
        textwrap.wrap(row.title, room["title"]),
        textwrap.wrap(row.mini, room["mini"]),
    ]
    shown = []
    for name, kind, symbol, span, title, mini in zip_longest(*cells, fillvalue=""):
        line = (
            f"{name:{ids + 2}}{gap}{_kind(kind, row.color)}{gap}"
            f"{symbol:{room['symbol']}}{gap}"
            f"{span:>{lines}}{gap}{title:{room['title']}}{gap}"
        )
        shown.append(
            (line + (click.style(mini, fg="magenta") if mini else "")).rstrip()
        )
    return shown


def _fold(name: str, width: int, mark: str = ".") -> list[str]:
    """Return a name in pieces, broken after a mark, or else an underscore."""
    if len(name) <= width:
        return [name]
    pieces = [""]
    for part in re.findall(rf"[^{mark}]*{re.escape(mark)}?", name):
        is_long = len(part) > width
        for word in re.findall(r"_*[^_]*_?", part) if is_long else [part]:
            if len(pieces[-1]) + len(word) > width:
                pieces.append("")
            pieces[-1] += word
    return [line for piece in pieces for line in textwrap.wrap(piece, width)]


def _stacked(rows: Sequence[_Row], width: int) -> Iterator[str]:
    ids, lines = _widest(rows, "id"), _widest(rows, "lines")
    below = max(width - 4, 1)
    for row in rows:
        mini = "" if row.mini == "-" else row.mini
        kind = _kind(row.kind, row.color)
        head = f"{row.mark} {row.id:{ids}}  {kind}  {row.lines:>{lines}}"
        if len(click.unstyle(head)) > width:
            name = textwrap.wrap(f"{row.mark} {row.id}", width, drop_whitespace=False)
            head = "\n".join([*name, f"    {kind}  {row.lines}"])
        more = [*_fold(row.symbol, below), *textwrap.wrap(row.title, below)]
        last = click.unstyle(head.rpartition("\n")[2])
        if mini and len(last) + 2 + len(row.mini) <= width:
            head = f"{head}  {click.style(mini, fg='magenta')}"
        else:
            named = textwrap.wrap(mini, below)
            more += [click.style(part, fg="magenta") for part in named]
        yield "\n".join([head.rstrip(), *(f"    {line}" for line in more)])


def legend(notes: Iterable[Note], say: Say = english) -> list[str]:
    """Return a line for each mark that the table shows."""
    review = typed("review", "ID")
    changed = say(
        "its code, or what is around it, changed since its review: "
        "read it, then {command}"
    )
    meaning = {
        "unreviewed": f"{say('not reviewed yet')}: {review}",
        "changed": changed.format(command=review),
        "unlocked": f"{say('differs from the lock')}: "
        + typed("annotate", "--update-lock"),
    }
    states = {note.state for note in notes}
    return [f"{_MARKS[s]} {text}" for s, text in meaning.items() if s in states]
