"""Text from anywhere, made safe to show: nothing in it acts on a terminal unseen."""

from __future__ import annotations

import unicodedata

from readerkit.model.invisible import is_unseen

# What stands for letters that a terminal cannot show; the next best is their base.
_IN_ASCII = str.maketrans(
    {
        "©": "(c)",
        "ß": "ss",
        "\N{MULTIPLICATION SIGN}": "x",
        "·": "*",
        "…": "...",
        "\N{EN DASH}": "-",
        "—": "-",
        "─": "-",
        "→": "->",
        "≤": "<=",
        "≥": ">=",
        "\N{LEFT SINGLE QUOTATION MARK}": "'",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "“": '"',
        "”": '"',
    }
)


def in_ascii(text: str) -> str:
    """Return ``text`` as near as ASCII comes to it; a question mark for the rest.

    >>> in_ascii("© Müller – 2 × 3 ☃")
    '(c) Muller - 2 x 3 ?'
    """
    bases = unicodedata.normalize("NFKD", text.translate(_IN_ASCII))
    letters = (c for c in bases if not unicodedata.combining(c))
    return "".join(c if c.isascii() else "?" for c in letters)


def visible(text: str) -> str:
    """Return ``text`` with characters that cannot be seen spelt out.

    Line ends and tabs stay.

    >>> visible("a\\x1b[2Jb")
    'a<U+001B>[2Jb'
    """
    if text.isascii() and text.isprintable():
        return text
    unseen = {ord(letter) for letter in {*text} if not is_seen(letter)}
    return text.translate({code: f"<U+{code:04X}>" for code in unseen})


def visible_line(text: str) -> str:
    """Return ``text`` as ``visible`` does, on one line."""
    return visible(" ".join(text.split()))


def is_seen(letter: str) -> bool:
    """Tell whether a character shows itself, or is a line end or a tab."""
    if letter in "\n\t":
        return True
    return not is_unseen(letter)
