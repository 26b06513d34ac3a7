"""Words as the search knows them; ``site/theme/find.js`` cuts a query alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from unicodedata import combining, normalize

from readerkit.content.search_words import SearchWords

_RUN = re.compile(r"[^\W_]+")
_SMALL_THEN_CAPITAL = re.compile(r"([a-z0-9])([A-Z])")
_CAPITALS_THEN_WORD = re.compile(r"([A-Z])([A-Z][a-z])")
_KEPT = re.compile(r"\d|ss$")
_DOUBLED = re.compile(r"([^aeiouls])\1$")
_SHORT = 3
"""So many letters remain of a stem; a part of fewer is no word of its own."""


def plain(text: str) -> str:
    """Return a text in small letters without accents."""
    letters = normalize("NFD", text.lower())
    return "".join(each for each in letters if not combining(each))


def split(text: str) -> Iterator[str]:
    """Yield the words of a text, those inside a name too.

    >>> list(split("RowParallelLinear of ZeRO"))
    ['row', 'parallel', 'linear', 'of', 'zero']
    """
    for run in _RUN.findall(text):
        yield from _parts(run)


@lru_cache(maxsize=100_000)  # a book says few words, many times each
def _parts(run: str) -> tuple[str, ...]:
    parted = _SMALL_THEN_CAPITAL.sub(r"\1 \2", run)
    parts = _CAPITALS_THEN_WORD.sub(r"\1 \2", parted).split(" ")
    is_one = len(parts) == 2 and min(map(len, parts)) < _SHORT
    return tuple(map(plain, [run] if is_one else parts))


class Stems:
    """What words of a kind have in common, and which phrases are one idea."""

    def __init__(self, known: SearchWords) -> None:
        self._stop = {*known.stop.split()}
        self._endings = sorted(known.endings.split(), key=len, reverse=True)
        self._named = [*self._phrases(known.same)]

    def cut(self, word: str) -> str:
        """Return a word without its ending; two letters alike in front are one."""
        if _KEPT.search(word):
            return word
        for end in self._endings:
            if len(word) - len(end) >= _SHORT and word.endswith(end):
                return _DOUBLED.sub(r"\1", word.removesuffix(end))
        return word

    def told(self, text: str) -> set[str]:
        """Return the words of a text that tell anything."""
        return {word for word in split(text) if word not in self._stop}

    def ideas(self, text: str) -> set[str]:
        """Return the names of what a text says in phrases that lose their sense.

        Without its small words "out of memory" is memory: it is found as ``oom``.
        """
        joined = f" {' '.join(split(text))} "
        return {name for phrase, name in self._named if f" {phrase} " in joined}

    def _phrases(self, same: Iterable[str]) -> Iterator[tuple[str, str]]:
        for group in same:
            name, *phrases = (" ".join(split(each)) for each in group.split(" = "))
            for phrase in phrases if " " not in name else ():
                words = phrase.split(" ")
                if len(words) > 1 and len({*words} - self._stop) < 2:
                    yield phrase, name
