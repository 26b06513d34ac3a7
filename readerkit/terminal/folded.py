"""Printing what was made for 80 columns."""

from __future__ import annotations

import sys

import click

from readerkit.system.screen import screen_columns


def columns(most: int = 80) -> int:
    """Return how wide text may be: what the terminal has, elsewhere ``most``."""
    if not sys.stdout.isatty():
        return most
    return min(most, max(20, screen_columns()))


def tell(text: str) -> None:
    """Print text; on a terminal that is narrower than its lines they are folded."""
    from readerkit.render.fold import fold

    if sys.stdout.isatty():
        text = fold(text, screen_columns())
    click.echo(text)
