"""The languages of site and terminal, and how a phrase is said in one of them."""

from __future__ import annotations

from collections.abc import Callable

SPANISH = "es"
LANGUAGES = ("en", SPANISH)
"""English, in which everything is written, and what its words are translated to."""

Say = Callable[[str], str]
"""Returns a phrase in a language; the English one where there is no other."""


def english(phrase: str) -> str:
    """Return the phrase itself."""
    return phrase
