"""Text made for 80 columns, on a terminal that is narrower: broken between words."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

LEAST_COLUMNS = 20


def fold(text: str, columns: int) -> str:
    """Return text whose lines fit, as far as words do; colours cost no room.

    What follows a break is indented below its line, and a gap between columns counts as
    one blank where it is broken.

    >>> print(fold("memory of the most  1.68 GB", 20))
    memory of the most
      1.68 GB
    """
    columns = max(columns, LEAST_COLUMNS)
    rows = (row for line in text.split("\n") for row in _rows(line, columns))
    return "\n".join(rows)


def _rows(line: str, columns: int) -> Iterator[str]:
    if len(click.unstyle(line)) <= columns:
        yield line
        return
    indent = " " * min(len(line) - len(line.lstrip(" ")) + 2, columns // 2)
    row = ""
    for gap, word in re.findall(r"( *)([^ ]+)", line):
        if row.strip() and len(click.unstyle(row + gap + word)) > columns:
            yield row
            row = indent + word
        else:
            row += gap + word
    yield row
