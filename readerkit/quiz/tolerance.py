"""How near a number is to its key, how that is said, and which of two is meant."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from readerkit.model.language import Told
from readerkit.quiz.variant import format_number

_ONE_SIGN = re.compile(
    r"[^\d.,]*(?P<head>[1-9]\d{0,2})(?P<sign>[.,])(?P<tail>\d{3})[^\d.,]*\.?"
)
PATTERNS = {"one_sign": _ONE_SIGN}
"""By which a number is read that may be two, on a page too."""


@dataclass(frozen=True, slots=True)
class AnswerTolerance:
    """How near an answer has to be."""

    relative: float = 0.0
    absolute: float = 0.0
    significant: int = 0
    """Digits; where given, the other two do not count."""

    @classmethod
    def of(
        cls,
        relative: float | None,
        absolute: float | None,
        significant: int | None,
        *,
        default: float,
    ) -> AnswerTolerance:
        """Return it as it was written; within a share where none of it was."""
        if relative is absolute is significant is None:
            return cls(default)
        return cls(relative or 0.0, absolute or 0.0, significant or 0)

    def accepts(self, number: float, key: float) -> bool:
        """Tell whether a number x is near enough to the key a.

        By significant digits: |x - a| < 0.51·10^-n with n = d - 1 - floor(log10|a|),
        half a unit of the last digit, and a little for those who rounded at another
        step. 15.8 is 15.789 to three digits; 15.7 is not. Else
        |x - a| <= absolute + relative·|a|, as both add up.

        Source: rounding to nearest, ISO 80000-1 annex B; the rule of numpy.isclose.
        """
        away, limit = abs(number - key), self.limit(key)
        if self.significant:
            return away < limit
        # A hair more, so that a limit typed in decimal is not missed in binary.
        return away <= limit * (1 + 1e-9) + 1e-12

    def limit(self, key: float) -> float:
        """Return how far from the key an answer may be."""
        if self.significant:
            leading = math.floor(math.log10(abs(key))) if key else 0
            return 0.51 * 10.0 ** (leading + 1 - self.significant)
        return self.absolute + self.relative * abs(key)

    def is_near(self, number: float, key: float) -> bool:
        """Tell whether a wrong number may be a right one, not well rounded."""
        if self.is_of_counts(key):
            return number != int(number) and abs(number - key) < 1
        return not self.significant and abs(number - key) <= 5 * self.limit(key)

    def is_of_counts(self, key: float) -> bool:
        """Tell whether a whole number is asked for, and none beside it will do."""
        return not self.limit(key) and key == int(key)

    def told(self, unit: str) -> Told:
        """Return it in words; per cent of a share are told from its points."""
        if self.significant:
            return Told("to {count} significant digits", count=self.significant)
        is_share = unit == "%"
        share = Told(
            "within {share}% of the answer itself, not points"
            if is_share
            else "within {share}%",
            share=format_number(100 * self.relative),
        )
        amount = Told(
            "within {amount} percentage points" if is_share else "within {amount}",
            amount=format_number(self.absolute),
        )
        if self.relative and self.absolute:
            return Told("{one} or {other}", one=share, other=amount)
        if self.relative:
            return share
        return amount if self.absolute else Told("exactly")


def two_readings(answer: str, value: float, key: float) -> Told | None:
    """Return what to ask where the one sign of a number may part what it did not.

    Some part thousands with it, others a fraction. Sizes alone tell: 1,875 is read as
    1875, and asked about where 1.875 is nearer to the key.

    >>> str(two_readings("1,875 GB", 1875, 2))
    "got '1,875 GB', which is 1875 or 1.8750: type one of the two"
    """
    match = _ONE_SIGN.fullmatch(answer[:200])
    if match is None or value * key <= 0:
        return None
    head, sign, tail = match.groups()
    other = value * 1000 if sign == "." else value / 1000
    if abs(math.log(other / key)) >= abs(math.log(value / key)):
        return None
    told = "got '{got}', which is {whole} or {part}: type one of the two"
    part = f"{head}.{tail}0"  # with a digit more it has one reading
    return Told(told, got=answer[:60], whole=head + tail, part=part)
