"""The languages of site and terminal, and how a phrase is said in one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

SPANISH = "es"
LANGUAGES = ("en", SPANISH)
"""English, in which everything is written, and what its words are translated to."""

Say = Callable[[str], str]
"""Returns a phrase in a language; the English one where there is no other."""


def english(phrase: str) -> str:
    """Return the phrase itself."""
    return phrase


class Told(str):
    """A phrase with its blanks filled in: English, and what to say it again from."""

    phrase: str
    values: Mapping[str, object]

    def __new__(cls, phrase: str, /, **values: object) -> Told:
        """Return it; a value may be told in turn."""
        told = super().__new__(cls, phrase.format(**values))
        told.phrase, told.values = phrase, values
        return told


def said(text: object, say: Say) -> str:
    """Return what is told in a language; any other text as it is."""
    if not isinstance(text, Told):
        return str(text)
    values = {name: said(value, say) for name, value in text.values.items()}
    return say(text.phrase).format(**values)
