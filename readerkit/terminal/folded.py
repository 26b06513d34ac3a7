"""How wide the terminal is, and printing on it what was made for 80 columns."""

from __future__ import annotations

import sys

import click

from readerkit.wording.fold import fitting, screen_columns

__all__ = ["columns", "fitting", "screen_columns", "tell"]


def columns(most: int = 80) -> int:
    """Return how wide text may be: what the terminal has, elsewhere ``most``."""
    if not sys.stdout.isatty():
        return most
    return min(most, max(20, screen_columns()))


def tell(text: str, *, err: bool = False) -> None:
    """Print text, to stderr with ``err``; on a terminal its words stay whole."""
    click.echo(fitting(text, sys.stderr if err else sys.stdout), err=err)
