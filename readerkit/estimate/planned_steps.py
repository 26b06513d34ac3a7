"""The steps of a schedule with their times, and the grid that they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple


class PlannedStep(NamedTuple):
    """One step of a schedule, to be drawn."""

    rank: int
    start: int
    end: int
    kind: Literal["F", "B", "W"]
    microbatch: int
    chunk: int


def chunk_name(chunk: int) -> str:
    """Return the letters of a chunk, as a table's columns have them.

    >>> [chunk_name(chunk) for chunk in (0, 25, 26, 52)]
    ['a', 'z', 'aa', 'ba']
    """
    ahead, letter = divmod(chunk, 26)
    return (chunk_name(ahead - 1) if ahead else "") + chr(ord("a") + letter)


def drawn(bars: Sequence[PlannedStep], ranks: int) -> str:
    """Return steps as text: a line a rank, a column a unit of time."""
    grid = [["."] * max(bar.end for bar in bars) for _ in range(ranks)]
    chunked = any(bar.chunk for bar in bars)
    for bar in bars:
        letter = chunk_name(bar.chunk) if chunked else ""
        cell = f"{bar.kind}{bar.microbatch}{letter}"
        grid[bar.rank][bar.start : bar.end] = [cell] * (bar.end - bar.start)
    width = max(len(cell) for cells in grid for cell in cells)
    lines = (" ".join(cell.ljust(width) for cell in cells) for cells in grid)
    return "\n".join(
        f"rank {rank} | {line}".rstrip() for rank, line in enumerate(lines)
    )
