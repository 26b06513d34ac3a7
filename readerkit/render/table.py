"""The table of notes: plain text, so that it costs less to show than to resolve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import click

from readerkit.book import Note
from readerkit.render.visible import visible_line

_MARKS = {"reviewed": " ", "unreviewed": "?", "changed": "!", "unlocked": "*"}
_COLORS = {"citation": "cyan", "note": "green", "pitfall": "yellow"}
LEGEND = {
    "unreviewed": "? not reviewed yet: readerkit review ID",
    "changed": "! its code changed since its review: read it, then readerkit review ID",
    "unlocked": "* differs from the lock: readerkit annotate --update-lock",
}


def note_table(notes: Sequence[Note], width: int | None) -> str:
    """Return the notes grouped by file.

    One line each where ``width`` allows it or is None (a pipe); otherwise two, with the
    place and the title on the second.
    """
    rows = [_row(note) for note in notes]
    ids, symbols, places, titles, minis = (
        max((len(row[column]) for row in rows), default=0) for column in range(5)
    )
    wide = width is None or width >= ids + symbols + places + titles + minis + 20
    blocks = []
    for path, group in groupby(zip(notes, rows, strict=True), key=_path):
        lines = [click.style(visible_line(path), bold=True)]
        for note, (name, symbol, place, title, mini) in group:
            kind = note.annotation.kind
            shown = click.style(f"{kind:8}", fg=_COLORS[kind])
            head = f"{_MARKS[note.state]} {name:{ids}}  {shown}  "
            mini = click.style(mini, fg="magenta")
            if wide:
                lines.append(
                    f"{head}{symbol:{symbols}}  {place:{places}}  "
                    f"{title:{titles}}  {mini}"
                )
            else:
                lines.append(f"{head}{symbol}")
                beside = f"  {mini}" if note.minis else ""
                lines.append(f"    {click.style(place, dim=True)}{beside}")
                lines.append(f"    {title}")
        blocks.append("\n".join(line.rstrip() for line in lines))
    return "\n\n".join(blocks)


def _row(note: Note) -> tuple[str, str, str, str, str]:
    """Return id, symbol, place, title and mini, each on one line."""
    return (
        note.annotation.id,
        visible_line(note.symbol),
        visible_line(str(note.span)),
        visible_line(note.annotation.title),
        visible_line(", ".join(note.minis)) or "-",
    )


def _path(row: tuple[Note, object]) -> str:
    return row[0].span.path


def legend(notes: Iterable[Note]) -> list[str]:
    """Return a line for each mark that the table shows."""
    states = {note.state for note in notes}
    return [text for state, text in LEGEND.items() if state in states]
