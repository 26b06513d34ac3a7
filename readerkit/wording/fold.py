"""Text made for 80 columns, on a terminal that is narrower: broken between words."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import TextIO

LEAST_COLUMNS = 20
ROOM = 24
"""The width of a column in which text may go on below itself."""


def screen_columns(stream: TextIO | None = None) -> int:
    """Return ``COLUMNS``, else what a stream's terminal has (stdout's), else 80.

    As shutil says it, which takes 2 ms to import.
    """
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given) > 0:
        return int(given)
    try:
        shown_on = stream or sys.__stdout__
        return os.get_terminal_size(shown_on.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


def width_of(stream: TextIO) -> int | None:
    """Return how wide the terminal of a stream is; None where it has none."""
    return screen_columns(stream) if stream.isatty() else None


def fitting(text: str, stream: TextIO) -> str:
    """Return text whose words stay whole on the terminal that a stream may be."""
    columns = width_of(stream)
    return text if columns is None else fold(text, columns)


def fold(text: str, columns: int) -> str:
    """Return text whose lines fit, as far as words do; colours cost no room.

    What follows a break stands below the last column, where that has room; elsewhere
    that column begins below its line, and all that follows is indented.

    >>> print(fold("memory of the most  1.68 GB", 20))
    memory of the most
      1.68 GB
    """
    columns = max(columns, LEAST_COLUMNS)
    rows = (row for line in text.split("\n") for row in _rows(line, columns))
    return "\n".join(rows)


def _rows(line: str, columns: int) -> Iterator[str]:
    import click  # for what is folded alone: ranks and pipes do without

    plain = click.unstyle(line)
    if len(plain) <= columns:
        yield line
        return
    gaps = re.finditer(r"(?<=\S) {2,}(?=\S)", plain)
    last = max((gap.end() for gap in gaps), default=0)
    has_room = columns - last >= ROOM
    below = min(len(plain) - len(plain.lstrip(" ")) + 2, columns // 2)
    indent = max(below, last) if has_room else below
    row, at = "", 0
    for gap, word in re.findall(r"( *)([^ ]+)", line):
        at += len(gap)
        is_full = len(click.unstyle(row + gap + word)) > columns
        if row.strip() and (is_full or (at == last and not has_room)):
            yield row
            fits = indent + len(click.unstyle(word)) <= columns
            row = " " * (indent if fits else below) + word
        else:
            row += gap + word
        at += len(click.unstyle(word))
    yield row
