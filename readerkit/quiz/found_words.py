"""Finds claims in a text that somebody typed: patterns of words, sentence by sentence.

A pattern is terms that stand in one sentence, in any order: ``bounded|constant`` is one
word or the other, ``grow*`` any that begins so, ``all_reduce`` words in a row (with or
without a blank or a hyphen between them), ``!hardly|never`` none of them. Case, accents
and signs do not count: ``2(N-1)/N`` is ``2_n_1_n``. No part of it is a regular
expression, so that a page can read the same patterns.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated

from readerkit.model.base import pattern

_TERM = r"!?[0-9a-z]+(_[0-9a-z]+)*\*?(\|[0-9a-z]+(_[0-9a-z]+)*\*?)*"
WordPattern = Annotated[str, pattern(rf"^{_TERM}( {_TERM})*$")]
"""Terms with blanks between them."""

_END = re.compile(r"(?<=[.;!?])\s+|\n\s*(?=[-*•]|\d+[.)]\s)|\n\s*\n")
MAX_QUOTED = 90
PATTERNS = {"sentence_end": _END}
"""By which a text is read, on a page too."""


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; a line that goes on below is the same one."""
    parts = (" ".join(part.split()) for part in _END.split(text))
    return [part for part in parts if part]


def find(patterns: Iterable[str], text: str) -> str:
    """Return the first sentence that fits one of the patterns; none: an empty one.

    >>> find(["latency grow*|rise* !not"], "It is wide. The latency rises with N.")
    'The latency rises with N.'
    """
    wanted = [terms(each) for each in patterns]
    for sentence in sentences(text):
        words = plain_words(sentence)
        for each in wanted:
            if all(bool(term.search(words)) != is_not for term, is_not in each):
                return sentence
    return ""


def quoted(sentence: str) -> str:
    """Return a sentence as it is shown: its beginning, where it is long."""
    if len(sentence) <= MAX_QUOTED:
        return sentence
    return sentence[:MAX_QUOTED].rsplit(" ", 1)[0] + " …"


def plain_words(text: str) -> str:
    """Return a text as it is compared: words and numbers with a blank between them.

    >>> plain_words("Ancho de banda: 2(N−1)/N, ¡según el anillo!")
    'ancho de banda 2 n 1 n segun el anillo'
    >>> plain_words("It doesn't")
    'it does not'
    """
    whole = re.sub(r"n['\u2019]t\b", " not", text.casefold())
    letters = unicodedata.normalize("NFKD", whole)
    bare = "".join(each for each in letters if not unicodedata.combining(each))
    return " ".join(re.findall(r"[0-9a-z]+", bare))


@lru_cache(maxsize=4096)
def terms(written: str) -> tuple[tuple[re.Pattern[str], bool], ...]:
    """Return each term of a pattern, and whether it must not be there."""
    found = []
    for term in written.split():
        words = (
            re.escape(word.rstrip("*")).replace("_", " ?")
            + ("[0-9a-z]*" if word.endswith("*") else "")
            for word in term.removeprefix("!").split("|")
        )
        found.append((re.compile(rf"\b(?:{'|'.join(words)})\b"), term[0] == "!"))
    return tuple(found)
