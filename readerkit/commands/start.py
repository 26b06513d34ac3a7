"""``readerkit start``: the first stop, and where to go from there."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import book_option, lang_option
from readerkit.model.language import LANGUAGES
from readerkit.terminal.folded import fitting, tell
from readerkit.terminal.pager import show_paged
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.model.language import Say

NEXT_STOP = "tp-dgrad-overlap"
# Lines of it and of the code share the first screen of a terminal of 80 by 24.
_INTRODUCTION = (
    "In Megatron-LM's own layers a tensor-parallel pair ends in the lines below, the "
    "real ones, at a pinned commit, checked byte for byte (by default its trainer "
    "takes Transformer Engine's). Each rank holds a slice of the weight's input "
    "dimension, so its product is only a part of the sum."
)
_QUESTION = "Which collective closes the layer? Decide before you read the note."
_INTRODUCTION_COLUMNS = 80
_AFTER = {
    "quiz 35 --topic tensor_parallel": "predict, answer, see the line that decides",
    f"annotate megatron {NEXT_STOP}": "where backward hides its collective",
    "annotate megatron": "every note on Megatron-LM, by file",
    "annotate pytorch": "the notes on PyTorch DDP, FSDP, DTensor",
}
_IN_ANY_BOOK = {
    "site build": "all of it as pages, with search",
    "note FILE:LINES": "write a note of your own on any lines",
}
_WITH_TORCH = {
    "run tp": "the small one, on two processes",
    "compare tp --upstream megatron": "it beside the real one, event by event",
    "break tensor_parallel g-missing": "it without this collective",
}
_TRANSLATED = ("quiz", "compare", "break")
"""What takes a language of what ships."""
_COMMAND_COLUMNS = 42
_DECIDE = "Which collective closes the layer? Decide; Enter shows the note, q leaves."
_READ = "Read them first; Enter shows the note, q leaves."


@click.command()
@lang_option
@book_option
def start(lang: str | None, book: Path | None) -> None:
    """Show one real stop: the lines, the note, and where to go next.

    \b
    Example:
        readerkit start
        readerkit start --lang es
    """
    from readerkit.app.interface_translation import known_language, say_in
    from readerkit.app.library import open_library
    from readerkit.app.read_paths import FIRST_STOP
    from readerkit.content.resolved_notes import resolve_notes
    from readerkit.errors import ReaderkitError
    from readerkit.terminal.note import note_above, note_page

    library = open_library(book)
    notes = library.book.annotations
    annotation = notes.get(FIRST_STOP) or next(iter(notes.values()), None)
    if annotation is None:
        write = typed("note", "FILE:LINES")
        raise ReaderkitError(f"this book has no note to start from; write one: {write}")
    language = known_language(lang, library)
    say = say_in(language)
    texts = library.book.translated(annotation, language).texts
    annotation = annotation.with_texts(texts)
    sources = library.sources(library.upstream(annotation.upstream))
    [note] = resolve_notes(library.book, sources, [annotation])
    is_known = annotation.id == FIRST_STOP
    introduction = [
        row
        for text in ((_INTRODUCTION, _QUESTION) if is_known else ())
        for row in textwrap.wrap(say(text), _INTRODUCTION_COLUMNS)
    ]
    if introduction:
        introduction.append("")
    above = "\n".join([*introduction, note_above(note, sources, say)])
    after = _where_to_go(library, language)
    page = note_page(library, note, sources, below=True, language=language)
    below = f"{page}\n{after}"
    if sys.stdin.isatty() and sys.stdout.isatty():
        tell(above)
        # The site folds the answer away too: decided first, it is remembered.
        asked = fitting(say(_DECIDE if is_known else _READ), sys.stdout)
        said = click.prompt(asked, default="", show_default=False, prompt_suffix=" ")
        if said.strip().lower() not in ("q", "quit"):
            show_paged(f"\n{below}", language=language)
    else:
        click.echo(f"{above}\n{below}", nl=False)


def _where_to_go(library: Library, language: str) -> str:
    """Return the next commands to type, in this book."""
    from readerkit.app.interface_translation import say_in
    from readerkit.app.quiz_banks import QuizBanks

    if NEXT_STOP in library.book.annotations:
        here, with_torch = _AFTER, _WITH_TORCH
    else:
        phases = QuizBanks(library.root).phases()
        here = {f"quiz {phase}": "predict, answer, see the lines" for phase in phases}
        here |= {"annotate": "every note of this book, by file"}
        with_torch = {}
    say = say_in(language)
    rows = [say("Where to go from here:"), *_rows(here | _IN_ANY_BOOK, language, say)]
    if with_torch:
        rows += [say("With torch installed:"), *_rows(with_torch, language, say)]
    return "\n".join(rows) + "\n"


def _takes(name: str, language: str) -> bool:
    """Tell whether a command takes this language; notes, any that a book has."""
    of_what_ships = language in LANGUAGES and name in _TRANSLATED
    return language != "en" and (name == "annotate" or of_what_ships)


def _rows(commands: Mapping[str, str], language: str, say: Say) -> Iterator[str]:
    for words, says in commands.items():
        name, *more = words.split()
        if _takes(name, language):
            more += ["--lang", language]
        command = typed(name, *more)
        if len(command) > _COMMAND_COLUMNS:
            yield f"  {command}"
            command = ""
        yield f"  {command:{_COMMAND_COLUMNS}}  {say(says)}"
