"""Where a text gets the mark of a proved sentence: behind it, in any language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from readerkit.claims.unproved import sentences_of
from readerkit.content.claims import one_spaced

MARK = re.compile(r"⟦(\d+)⟧")
"""With the number of the claim that it leads to."""


def with_marks(text: str, english: str, says: Sequence[str]) -> str:
    """Return a text with the number of its first claim behind each proved sentence.

    ``says`` are the words of all claims, in English, empty where one proves nothing. In
    a translation with as many sentences the mark stands behind the one of its number.
    """
    spaced, at = text, 0
    for sentence, numbers in _proved(text, english, says):
        found = _end_of(sentence, spaced, at) if numbers else None
        if found is not None:
            spaced = f"{spaced[:found]}⟦{numbers[0]}⟧{spaced[found:]}"
            at = found
    return spaced


def together(texts: Iterable[str], says: Sequence[str]) -> list[int]:
    """Return of each claim the first that a sentence of these texts shares with it."""
    first = list(range(len(says) + 1))
    for text in texts:
        for _, numbers in _proved(text, text, says):
            low = min((first[n] for n in numbers), default=0)
            same = {first[n] for n in numbers}
            first = [low if each in same else each for each in first]
    return first[1:]


def words_in(text: str, english: str, says: str) -> str:
    """Return the sentences of a translation that say what a claim says; or nothing."""
    return " ".join(each for each, found in _proved(text, english, [says]) if found)


def _proved(
    text: str, english: str, says: Sequence[str]
) -> Iterator[tuple[str, list[int]]]:
    """Yield each sentence of a text with the numbers of the claims on it."""
    whole, own = one_spaced(english), [*sentences_of(english)]
    there = [*sentences_of(text)]
    if len(own) != len(there):
        return
    for (begin, sentence), (_, other) in zip(own, there, strict=True):
        end = begin + len(sentence)
        numbered = enumerate(says, 1)
        yield other, [n for n, each in numbered if _touches(each, whole, begin, end)]


def _touches(says: str, whole: str, begin: int, end: int) -> bool:
    words = one_spaced(says)
    at = whole.find(words)
    return bool(words) and 0 <= at < end and begin < at + len(words)


def _end_of(sentence: str, text: str, begin: int) -> int | None:
    """Return where a sentence ends in a text whose white space is its own."""
    words = sentence.split()
    whole = " ".join(words)
    if (at := text.find(whole, begin)) >= 0:  # on one line: no pattern is made
        return at + len(whole)
    found = re.compile(r"\s+".join(map(re.escape, words))).search(text, begin)
    return found.end() if found else None
