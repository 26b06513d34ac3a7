"""Line numbers as text, ``3-7,9``: the lines of a file that ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

MAX_LINES = 1_000_000
"""Of all files that one record watched; written as runs they take a few bytes."""


def lines_to_text(lines: Iterable[int]) -> str:
    """Return sorted line numbers as ``3-7,9``."""
    runs: list[list[int]] = []
    for line in sorted(set(lines)):
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


@lru_cache(maxsize=8192)
def line_numbers(text: str) -> frozenset[int]:
    """Return the same as ``lines_from_text``, read once."""
    return frozenset(lines_from_text(text))


def lines_from_text(text: str) -> set[int]:
    """Return the line numbers that ``lines_to_text`` wrote."""
    return {line for run in _runs(text) for line in run}


def _runs(text: str) -> Iterator[range]:
    """Yield the runs of a text; ValueError where it is none of lines."""
    for run in filter(None, text.split(",")):
        first, dash, last = run.partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal()):
            raise ValueError(f"lines {run!r}")
        lines = range(int(first), int(last) + 1)
        if not 0 < len(lines) <= MAX_LINES:
            raise ValueError(f"lines {run!r}")
        yield lines


def count_lines(text: str) -> int:
    """Return how many lines a text names; ValueError where it is none of lines."""
    return sum(map(len, _runs(text)))
