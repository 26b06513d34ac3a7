"""Texts put together of parts, in another language: numbers, names and signs stay."""

from __future__ import annotations

import re
from collections.abc import Mapping

BLANK = "{}"
"""Stands for a number in a part."""
MARKS = ("; ", ": ", ", ", " + ", " x ")
"""Where a text may be put together, what holds most first."""


def in_parts(text: str, words: Mapping[str, str]) -> str:
    """Return a text of which all parts are known, and nothing for any other.

    >>> words = {"{} losses": "{} pérdidas", "each once": "cada una una vez"}
    >>> in_parts("2 x (8 + 3 losses), each once", words)
    '2 x (8 + 3 pérdidas), cada una una vez'
    >>> in_parts("2 x (8 + 3 losses), each twice", words)
    ''
    """
    pattern, numbers = without_numbers(text)
    known = words.get(pattern)
    if known is not None:
        return _filled(known, numbers)
    if text.upper() == text.lower() or _is_name(text):
        return text
    for mark in MARKS:
        parts = text.split(mark)
        if len(parts) > 1:
            told = [in_parts(part, words) for part in parts]
            if "" not in told:
                return mark.join(told)
    return _unwrapped(text, words)


def _is_name(text: str) -> bool:
    """Tell whether it is one word as only names are: with a number, or of code."""
    return " " not in text and (BLANK in without_numbers(text)[0] or "_" in text)


def _unwrapped(text: str, words: Mapping[str, str]) -> str:
    """Return what follows a bracket or a minus, or what a bracket closes behind."""
    if text[:1] in ("(", "-"):
        told = in_parts(text[1:], words)
        return text[:1] + told if told else ""
    if text[-1:] == ")":
        told = in_parts(text[:-1], words)
        return told + ")" if told else ""
    return ""


def without_numbers(text: str) -> tuple[str, list[str]]:
    """Return a text with a blank for each number, and the numbers.

    >>> without_numbers("4 B x 102,016, each once")
    ('{} B x {}, each once', ['4', '102,016'])
    """
    return _NUMBER.sub(BLANK, text), _NUMBER.findall(text)


_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
"""A point or comma of it stands between digits."""


def _filled(known: str, numbers: list[str]) -> str:
    """Return a part with its numbers in their turn."""
    between = known.split(BLANK)
    text = between[0]
    for number, after in zip(numbers, between[1:], strict=True):
        text += number + after
    return text
