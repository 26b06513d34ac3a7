"""Numbers and nouns in messages; imports nothing of the package."""

from __future__ import annotations


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun in the right form.

    >>> counted(1, "file"), counted(1200, "file"), counted(2, "entry", "entries")
    ('1 file', '1,200 files', '2 entries')
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
