"""``readerkit start``: the first stop, and where to go from there."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from readerkit.commands.options import book_option

FIRST_STOP = "tp-row-forward"
# Lines of it and of the code share the first screen of a terminal of 80 by 24.
_INTRODUCTION = """\
Every tensor-parallel pair of layers in Megatron-LM ends in the lines below, the
real ones, at a pinned commit, checked byte for byte. Each rank holds a slice of
the weight's input dimension, so its product is only a part of the sum.
Which collective closes the layer? Decide before you read the note.
"""
_AFTER = """\
Where to go from here:
  readerkit quiz 35 --topic tensor_parallel   predict, answer, see the line that decides
  readerkit annotate megatron tp-dgrad-overlap
                                              where backward hides its collective
  readerkit annotate megatron                 every note on Megatron-LM, by file
  readerkit annotate pytorch                  the notes on PyTorch DDP, FSDP, DTensor
  readerkit site build                        all of it as pages, with search
  readerkit note FILE:LINES                   write a note of your own on any lines
With torch installed:
  readerkit run tp                            the small one, on two processes
  readerkit compare tp --upstream megatron    it beside the real one, event by event
  readerkit break tensor_parallel g-missing   it without this collective
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
    from readerkit.commands.library import open_library
    from readerkit.commands.shown_note import show_note
    from readerkit.errors import ReaderkitError
    from readerkit.render.note_view import console

    library = open_library(book)
    annotation = library.book.annotations.get(FIRST_STOP)
    if annotation is None:
        raise ReaderkitError(f"this book has no note '{FIRST_STOP}' to start from")
    sources = library.sources(library.upstream(annotation.upstream))
    [note] = resolve_notes(library.book, sources, [annotation])
    screen = console()
    with screen.capture() as page:
        show_note(library, note, sources, screen)
    _show(f"{_INTRODUCTION}\n{page.get()}\n{_AFTER}")


def _show(text: str) -> None:
    """Print, a screen at a time where a terminal cannot hold it all."""
    height = shutil.get_terminal_size().lines
    if sys.stdout.isatty() and sys.stdin.isatty() and text.count("\n") >= height:
        # What was read stays on the screen, and the last line says how to go on.
        # After -P, less takes an s for the kind of prompt: the short one.
        prompt = r"-Psspace\: go on   q\: leave$"
        os.environ.setdefault("LESS", f"FRX{prompt}")
        click.echo_via_pager(text, color=True)
    else:
        click.echo(text, nl=False, color=True)
