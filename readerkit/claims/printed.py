"""The numbers that words print, and whether a value is one of them, rounded so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from readerkit.wording.numbers import BINARY_PREFIXES, DECIMAL

COUNTS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight"),
    *("nine", "ten", "eleven", "twelve"),
)
WORDS: dict[str, Fraction] = {
    **{word: Fraction(count) for count, word in enumerate(COUNTS)},
    **{"once": Fraction(1), "twice": Fraction(2), "thrice": Fraction(3)},
    **{"double": Fraction(2), "both": Fraction(2), "single": Fraction(1)},
    **{"half": Fraction(1, 2), "third": Fraction(1, 3), "quarter": Fraction(1, 4)},
}
_UNITS = {
    **{f"{prefix}B": size for prefix, size in {**DECIMAL, **BINARY_PREFIXES}.items()},
    **{"k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12},
    **{"%": Fraction(1, 100), "thousand": 10**3, "million": 10**6, "billion": 10**9},
    **{"ns": Fraction(1, 10**9), "µs": Fraction(1, 10**6), "ms": Fraction(1, 1000)},
}
_ANY_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_NUMBER = re.compile(
    r"(?<![\w.])(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?:e(?P<power>[+-]?\d{1,3}))?(?:/(?P<below>[1-9]\d*))?"
    rf"(?:[ \u00a0-]?(?P<unit>{_ANY_UNIT})(?!\w))?"
)
_WORD = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as words have it."""

    text: str
    readings: tuple[tuple[Fraction, Fraction], ...]
    """What it may be, with its unit and without, and how far off by rounding."""

    def prints(self, value: int | float) -> bool:
        """Tell whether a value, rounded as this is, is this."""
        exact = Fraction(value)
        # A quotient that is no whole number comes as a float.
        blur = abs(exact) / 10**12
        return any(abs(exact - each) <= slack + blur for each, slack in self.readings)


def numbers_in(words: str) -> Iterator[Printed]:
    """Yield every number in some words: ``6,553,600``, ``25 MiB``, ``70%``, ``twice``.

    A unit counts (25 MiB is 26,214,400), and is left out too: a formula may be in it.
    What has neither unit nor decimals is not rounded.
    """
    for match in _NUMBER.finditer(words):
        digits = match["number"].replace(",", "")
        power = Fraction(10) ** int(match["power"] or 0)
        value = Fraction(digits) * power / int(match["below"] or 1)
        decimals = len(digits.partition(".")[2])
        is_rounded = bool(decimals or match["unit"] or match["power"])
        slack = power / 10**decimals / 2 if is_rounded else Fraction(0)
        units = dict.fromkeys(
            (Fraction(_UNITS.get(match["unit"] or "", 1)), Fraction(1))
        )
        yield Printed(match[0], tuple((value * u, slack * u) for u in units))
    for match in _WORD.finditer(words):
        worth = WORDS.get(match[0].lower())
        if worth is not None:
            yield Printed(match[0], ((worth, Fraction(0)),))
