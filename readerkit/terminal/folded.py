"""Printing what was made for 80 columns."""

from __future__ import annotations

import shutil
import sys

import click


def tell(text: str) -> None:
    """Print text; on a terminal that is narrower than its lines they are folded."""
    from readerkit.render.fold import fold

    if sys.stdout.isatty():
        text = fold(text, shutil.get_terminal_size().columns)
    click.echo(text)
