"""What the search knows of words: which say little, how they end, what is the same."""

from __future__ import annotations

from readerkit.content.kind import Kind
from readerkit.model.base import Model, Text


class SearchWords(Model, frozen=True):
    """What ``site/search.yaml`` holds; both languages in one, without accents."""

    stop: Text = ""
    endings: Text = ""
    same: tuple[Text, ...] = ()
    """Phrases of one meaning each, with ``=`` between them."""


SEARCH: Kind[SearchWords] = Kind("search-words", SearchWords, "one")
