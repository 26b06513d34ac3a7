"""The languages of site and terminal, and how a phrase is said in one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

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

    def said(self, say: Say) -> str:
        """Return it in the language of the phrases that are given."""
        values = {name: said(value, say) for name, value in self.values.items()}
        return say(self.phrase).format(**values)


class InBoth(Told):
    """A text that people wrote: English, and what it is in the other language."""

    other: str

    def __new__(cls, text: str, other: str) -> InBoth:
        """Return it; no phrase is looked up for it."""
        told = str.__new__(cls, text)
        told.phrase, told.values, told.other = text, {}, other
        return told

    def said(self, say: Say) -> str:
        """Return the text of a language."""
        return str(self) if say is english else self.other


def said(text: object, say: Say) -> str:
    """Return what is told in a language; any other text as it is."""
    return text.said(say) if isinstance(text, Told) else str(text)


def packed(text: str) -> object:
    """Return a text as JSON can hold it, what is told with what to say it again from.

    >>> unpacked(packed(Told("{count} lines", count=3))).values
    {'count': 3}
    """
    return [text.phrase, dict(text.values)] if isinstance(text, Told) else text


def unpacked(value: Any) -> str:
    """Return the text that was packed."""
    return Told(value[0], **value[1]) if isinstance(value, list) else str(value)


def in_each(text: str) -> tuple[str, ...]:
    """Return a text in each language that it, or a text told in it, was written in."""
    if isinstance(text, InBoth):
        return str(text), text.other
    if isinstance(text, Told):
        told = {n: in_each(v) for n, v in text.values.items() if isinstance(v, Told)}
        if any(len(texts) > 1 for texts in told.values()):
            other = {name: texts[-1] for name, texts in told.items()}
            return str(text), text.phrase.format(**{**text.values, **other})
    return (text,)


def made_of(texts: Iterable[str], make: Callable[[Iterator[str]], str]) -> str:
    """Return one text made of others: in both languages where one of them is."""
    each = [*texts]
    if not any(isinstance(text, InBoth) for text in each):
        return make(iter(each))
    return InBoth(*(make(in_each(t)[at] for t in each) for at in (0, -1)))
