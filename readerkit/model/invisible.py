"""Which characters show nothing of themselves; imports nothing of the package."""

from __future__ import annotations

import unicodedata

# Controls, formats (direction, zero width), lone surrogates, line and page separators.
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Letters and marks that draw nothing: Hangul fillers, the grapheme joiner, vowels that
# are not written, and selectors of another form of the letter in front of them.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u180b\u180c\u180d\u180f"
    + "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
)


def is_unseen(letter: str) -> bool:
    """Tell whether a character draws nothing, and is not even a plain space."""
    return unicodedata.category(letter) in _HIDDEN or letter in _BLANK
