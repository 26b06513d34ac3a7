"""Translates the interface: what site and terminal say, in the language asked for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from readerkit.app.folders import read_at_most, shipped_book
from readerkit.errors import ContentError, WrongUseError
from readerkit.model.language import SPANISH, Say, english, said
from readerkit.model.told_parts import in_parts

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.content.kind import Kind
    from readerkit.content.search_words import SearchWords
    from readerkit.content.translations import InterfaceWords

E = TypeVar("E")
FILE = Path("site", f"words.{SPANISH}.yaml")
SEARCH_FILE = Path("site", "search.yaml")


def read_words() -> InterfaceWords:
    """Return the Spanish words that ship: those of the site and of the terminal.

    Raises:
        ContentError: every fault of the file.
        ReaderkitError: a file that cannot be read.
    """
    from readerkit.content.translations import INTERFACE

    return _shipped(FILE, INTERFACE)


def read_search_words() -> SearchWords:
    """Return what the search of the site knows of words.

    Raises:
        ContentError: every fault of the file.
        ReaderkitError: a file that cannot be read.
    """
    from readerkit.content.search_words import SEARCH

    return _shipped(SEARCH_FILE, SEARCH)


def _shipped(file: Path, kind: Kind[E]) -> E:
    from readerkit.content.validation import read_document

    path = shipped_book() / file
    document = read_document(read_at_most(path, None), str(path), kind)
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


@cache
def say_of_estimates(language: str | None) -> Say:
    """Return what says in a language the names, titles and units of estimates."""
    if language != SPANISH:
        return english
    words, other = read_words(), say_in(language)

    def phrase(text: str) -> str:
        return in_parts(text, words.conventions) or other(text)

    return lambda text: (
        words.estimates.get(text)
        or (in_parts(text, words.conventions) or said(text, phrase))
    )


@cache
def say_of_records(language: str | None) -> Say:
    """Return what says in a language the terminal's phrases and what records tell."""
    if language != SPANISH:
        return english
    words, other = read_words(), say_in(language)
    every = words.all
    return lambda text: every.get(text) or in_parts(text, words.records) or other(text)


def known_language(language: str | None, library: Library) -> str:
    """Return a language of this book; English where none is named.

    Raises:
        ReaderkitError: one in which it has no translations.
    """
    book = library.book
    known = sorted({*book.translations, *book.tour_translations})
    by_name = {each.casefold(): each for each in ("en", *known)}
    meant = by_name.get("en" if language is None else language.casefold())
    if meant is None:
        expected = f"expected one of {', '.join(known)}" if known else "there are none"
        raise WrongUseError(
            f"--lang: this book has no translations into '{language}': {expected}"
        )
    return meant
