"""A grid of what ranks do, in blocks that fit a terminal."""

from __future__ import annotations

import re
from math import gcd
from typing import TextIO

from readerkit.wording.fold import screen_columns


def fitting_grid(grid: str, stream: TextIO) -> str:
    """Return a grid as wide as the terminal that a stream is; others take it whole."""
    return in_blocks(grid, screen_columns(stream)) if stream.isatty() else grid


def in_blocks(grid: str, width: int) -> str:
    r"""Return a grid whose rows fit, each block of columns with its heads again.

    >>> print(in_blocks("rank 0 | F0 F1 B0 B1\nrank 1 | .  F0 B0 .", 16))
    rank 0 | F0 F1
    rank 1 | .  F0
    <BLANKLINE>
    rank 0 | B0 B1
    rank 1 | B0 .
    """
    rows = grid.splitlines()
    if max(map(len, rows)) <= width:
        return grid
    at = rows[0].index("|") + 2
    size = gcd(*(m.start() for row in rows for m in re.finditer(r"\S+", row[at:])))
    each = max((width - at + 1) // max(size, 1), 1) * max(size, 1)
    longest = max(len(row) - at for row in rows)
    return "\n\n".join(
        "\n".join(
            (row[:at] + row[at + start : at + start + each]).rstrip() for row in rows
        )
        for start in range(0, longest, each)
    )
