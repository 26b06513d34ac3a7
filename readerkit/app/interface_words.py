"""Reads the words of site and terminal in another language, once somebody asks."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from readerkit.app.folders import read_at_most, shipped_book
from readerkit.errors import ContentError, ReaderkitError
from readerkit.model.language import SPANISH, Say, english

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.content.translations import InterfaceWords

FILE = Path("site", f"words.{SPANISH}.yaml")


def read_words() -> InterfaceWords:
    """Return the Spanish words that ship: those of the site and of the terminal.

    Raises:
        ContentError: every fault of the file.
        ReaderkitError: a file that cannot be read.
    """
    from readerkit.content.read import read_document
    from readerkit.content.translations import INTERFACE

    path = shipped_book() / FILE
    document = read_document(read_at_most(path, None), str(path), INTERFACE)
    if document.faults:
        raise ContentError(document.faults)
    return document.value


@cache
def say_in(language: str | None) -> Say:
    """Return what says the terminal's phrases in a language."""
    if language != SPANISH:
        return english
    words = read_words().all
    return lambda phrase: words.get(phrase, phrase)


def known_language(language: str | None, library: Library) -> str:
    """Return a language of this book; English where none is named.

    Raises:
        ReaderkitError: one in which it has no translations.
    """
    known = sorted(library.book.translations)
    if language is not None and language not in known:
        expected = f"expected one of {', '.join(known)}" if known else "there are none"
        raise ReaderkitError(
            f"--lang: this book has no translations into '{language}': {expected}"
        )
    return language or "en"
