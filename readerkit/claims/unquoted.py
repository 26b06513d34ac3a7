"""The words of an entry that no claim says: nobody but a reader checks them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readerkit.claims.unproved import places_of, sentences_of
from readerkit.content.claims import Claimed, one_spaced

_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Unquoted:
    """A part of a sentence, or the whole of one, that no claim says."""

    field: str
    """The text of the entry that it stands in."""
    words: str


@dataclass(frozen=True, slots=True)
class WordCount:
    """How many words the texts of some entries have, and how many no claim says."""

    all: int
    unquoted: int

    @classmethod
    def of(cls, entries: Sequence[Claimed]) -> WordCount:
        """Count the words of these entries."""
        texts = [text for each in entries for text in each.texts.values()]
        left = [part for each in entries for part in unquoted(each)]
        return cls(sum(map(_words, texts)), sum(_words(part.words) for part in left))


def unquoted(entry: Claimed) -> Iterator[Unquoted]:
    """Yield what no claim says of the texts of an entry, in reading order."""
    for name, text in entry.texts.items():
        whole = one_spaced(text)
        said = bytearray(len(whole))
        for _, first, last in places_of(entry.claims, whole):
            said[first:last] = b"\1" * (last - first)
        for start, sentence in sentences_of(text):
            for part in re.finditer(rb"\0+", said[start : start + len(sentence)]):
                words = sentence[part.start() : part.end()].strip()
                if _WORD.search(words):
                    yield Unquoted(name, words)


def _words(text: str) -> int:
    """Return how many words a text has: what blanks part, if any letter is in it."""
    return sum(bool(_WORD.search(word)) for word in text.split())
