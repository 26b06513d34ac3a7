"""How wide the terminal is, and printing on it what was made for 80 columns."""

from __future__ import annotations

import os
import sys
from typing import TextIO

import click


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


def columns(most: int = 80) -> int:
    """Return how wide text may be: what the terminal has, elsewhere ``most``."""
    if not sys.stdout.isatty():
        return most
    return min(most, max(20, screen_columns()))


def fitting(text: str, stream: TextIO) -> str:
    """Return text whose words stay whole on the terminal that a stream may be."""
    from readerkit.wording.fold import fold

    return fold(text, screen_columns(stream)) if stream.isatty() else text


def tell(text: str) -> None:
    """Print text; on a terminal that is narrower than its lines they are folded."""
    click.echo(fitting(text, sys.stdout))
