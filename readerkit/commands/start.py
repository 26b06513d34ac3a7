"""``readerkit start``: the first stop, and where to go from there."""

from __future__ import annotations

from pathlib import Path

import click

from readerkit.commands.options import book_option

FIRST_STOP = "tp-row-forward"
_INTRODUCTION = """\
Every tensor-parallel layer pair of every large model run with Megatron-LM ends in the
lines below. They are the real ones, at a pinned commit, checked byte for byte.

Before you read the note: each rank holds a slice of the weight's input dimension, so
each rank's product is only a part of the sum. Which collective closes the layer?
"""
_AFTER = """\
Where to go from here:
  readerkit annotate megatron               every note on Megatron-LM, by file
  readerkit annotate megatron tp-dgrad-overlap
                                            where the backward pass hides its collective
  readerkit annotate pytorch                the notes on PyTorch DDP, FSDP, DTensor
  readerkit note FILE:LINES                 write a note of your own on any lines
"""


@click.command()
@book_option
def start(book: Path | None) -> None:
    """Show one real stop: the lines, the note, and where to go next.

    \b
    Example:
        readerkit start
    """
    from readerkit.book import resolve_notes
    from readerkit.commands.annotate import show_note
    from readerkit.commands.library import open_library
    from readerkit.errors import ReaderkitError

    library = open_library(book)
    annotation = library.book.annotations.get(FIRST_STOP)
    if annotation is None:
        raise ReaderkitError(f"this book has no note '{FIRST_STOP}' to start from")
    sources = library.sources(library.upstream(annotation.upstream))
    [note] = resolve_notes(library.book, sources, [annotation])
    click.echo(_INTRODUCTION)
    show_note(library, note, sources)
    click.echo()
    click.echo(_AFTER, nl=False)
