"""How the search index is written small: ``site/theme/find.js`` reads it again.

What is alike stands together, a column each, so that gzip, which looks back 32 kB,
finds it; a number takes as few digits as it needs, and nothing parts it from the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

DIGITS = "".join(chr(code) for code in range(35, 127) if chr(code) != "\\")
"""What a string in a script holds as it is: neither quotes nor a blank."""
ENDING = 76
"""So many digits end a number; before one of them the others go on."""
LINE = "\n"
"""Stands between the texts of a column."""
OF_FILE = "="
"""Begins an address on the page of a file, by its number; a link has it quoted."""


def number(value: int) -> str:
    """Return a number as digits that need no end.

    >>> number(0), number(75), number(76), number(76 * 16)
    ('#', 'o', 'p#', 'pp#')
    """
    digits = [DIGITS[value % ENDING]]
    value //= ENDING
    while value:
        value, digit = divmod(value - 1, len(DIGITS) - ENDING)
        digits.append(DIGITS[ENDING + digit])
    return "".join(reversed(digits))


def numbers(values: Iterable[int]) -> str:
    """Return numbers one behind the other.

    >>> numbers([1, 76, 2])
    '$p#%'
    """
    return "".join(map(number, values))


def steps(values: Iterable[int]) -> Iterator[int]:
    """Yield how far each number is from the one before."""
    last = 0
    for value in values:
        yield value - last
        last = value


def column(texts: Iterable[str]) -> str:
    """Return texts one behind the other."""
    return LINE.join(text.replace(LINE, " ") for text in texts)


def paths(texts: Sequence[str]) -> str:
    """Return paths, each after how many folders of the one before it shares.

    >>> paths(["a/b/c", "a/b/d"])
    '#a/b/c\\n%d'
    """
    packed, before = [], list[str]()
    for text in texts:
        parts = text.split("/")
        same = shared(parts, before)
        packed.append(number(same) + "/".join(parts[same:]))
        before = parts
    return column(packed)


def shared(parts: Sequence[str], before: Sequence[str]) -> int:
    """Return how many parts begin both, the last one of its own left aside."""
    same = 0
    while same < min(len(parts) - 1, len(before)) and parts[same] == before[same]:
        same += 1
    return same
