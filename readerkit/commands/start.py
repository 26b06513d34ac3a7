"""``readerkit start``: the first stop, and where to go from there."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from readerkit.commands.options import book_option
from readerkit.terminal.folded import tell
from readerkit.terminal.pager import LESS, show_paged
from readerkit.wording.next_command import typed

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
_DECIDE = "Which collective closes the layer? Decide; Enter shows the note, q leaves."
# What was read stays on the screen, and the last line says how to go on. After -P,
# less takes an s for the kind of prompt: the short one.
_PROMPT = r"-Psspace\: go on   q\: leave$"


@click.command()
@book_option
def start(book: Path | None) -> None:
    """Show one real stop: the lines, the note, and where to go next.

    \b
    Example:
        readerkit start
    """
    from readerkit.app.library import open_library
    from readerkit.app.reading_paths import FIRST_STOP
    from readerkit.content.book import resolve_notes
    from readerkit.errors import ReaderkitError
    from readerkit.render.fold import fold
    from readerkit.terminal.note import note_above, note_page

    library = open_library(book)
    annotation = library.book.annotations.get(FIRST_STOP)
    if annotation is None:
        notes = typed("annotate")
        raise ReaderkitError(
            f"this book has no note '{FIRST_STOP}' to start from; its notes: {notes}"
        )
    sources = library.sources(library.upstream(annotation.upstream))
    [note] = resolve_notes(library.book, sources, [annotation])
    above = f"{_INTRODUCTION}\n{note_above(note, sources)}"
    below = f"{note_page(library, note, sources, below=True)}\n{_AFTER}"
    if sys.stdin.isatty() and sys.stdout.isatty():
        tell(above)
        # The site folds the answer away too: decided first, it is remembered.
        columns = shutil.get_terminal_size().columns
        asked = fold(_DECIDE, columns)
        said = click.prompt(asked, default="", show_default=False, prompt_suffix=" ")
        if said.strip().lower() not in ("q", "quit"):
            show_paged(f"\n{fold(below, columns)}", less=f"{LESS}{_PROMPT}")
    else:
        click.echo(f"{above}\n{below}", nl=False)
