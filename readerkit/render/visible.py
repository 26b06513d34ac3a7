"""Text from anywhere, made safe to show: nothing in it acts on a terminal unseen."""

from __future__ import annotations

import unicodedata

# Controls, formats (direction, zero width), lone surrogates, line and page separators.
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Letters and marks that draw nothing: Hangul fillers, the grapheme joiner.
_BLANK = "\u034f\u115f\u1160\u3164\uffa0"


def visible(text: str) -> str:
    """Return ``text`` with characters that cannot be seen spelt out.

    Line ends and tabs stay.

    >>> visible("a\\x1b[2Jb")
    'a<U+001B>[2Jb'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter if is_seen(letter) else f"<U+{ord(letter):04X}>" for letter in text
    )


def visible_line(text: str) -> str:
    """Return ``text`` as ``visible`` does, on one line."""
    return visible(" ".join(text.split()))


def is_seen(letter: str) -> bool:
    """Tell whether a character shows itself, or is a line end or a tab."""
    if letter in "\n\t":
        return True
    return unicodedata.category(letter) not in _HIDDEN and letter not in _BLANK
