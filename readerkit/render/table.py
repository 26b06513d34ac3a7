"""The table of notes: plain text, so that it costs less to show than to resolve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import click

from readerkit.book import Note

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
    ids = _widest(note.annotation.id for note in notes)
    symbols = _widest(note.symbol for note in notes)
    places = _widest(str(note.span) for note in notes)
    titles = _widest(note.annotation.title for note in notes)
    minis = _widest(", ".join(note.minis) for note in notes)
    one_line = ids + 10 + symbols + places + titles + minis + 14
    wide = width is None or width >= one_line
    blocks = []
    for path, group in groupby(notes, key=lambda note: note.span.path):
        rows = [click.style(path, bold=True)]
        for note in group:
            annotation = note.annotation
            kind = click.style(f"{annotation.kind:8}", fg=_COLORS[annotation.kind])
            mini = click.style(", ".join(note.minis) or "-", fg="magenta")
            head = f"{_MARKS[note.state]} {annotation.id:{ids}}  {kind}"
            if wide:
                rows.append(
                    f"{head}  {note.symbol:{symbols}}  {note.span!s:{places}}  "
                    f"{annotation.title:{titles}}  {mini}"
                )
            else:
                rows.append(f"{head}  {note.symbol}  {mini}")
                rows.append(f"    {click.style(str(note.span), dim=True)}")
                rows.append(f"    {annotation.title}")
        blocks.append("\n".join(rows))
    return "\n\n".join(blocks)


def legend(notes: Iterable[Note]) -> list[str]:
    """Return a line for each mark that the table shows."""
    states = {note.state for note in notes}
    return [text for state, text in LEGEND.items() if state in states]


def _widest(texts: Iterable[str]) -> int:
    return max(map(len, texts), default=0)
