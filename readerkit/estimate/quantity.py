"""Numbers with names: an item of an estimate, exact division, and checked input.

Bytes, parameters and FLOPs stay integers as long as they divide evenly, so that a sum
can be held against a published figure to the last digit.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

from readerkit.errors import EstimateError

Number = int | float
Unit = Literal[
    "parameters",
    "bytes",
    "bytes/parameter",
    "bytes/s",
    "seconds",
    "days",
    "years",
    "GPU-hours",
    "FLOPs",
    "FLOP/s",
    "fraction",
    "times",
    "steps",
    "elements",
    "tokens",
    "microbatches",
    "USD",
]

MAX_COUNT = 10**18
"""More than any model has parameters or any cluster bytes; a typing error beyond."""

MAX_AMOUNT = 1e30
"""More FLOPs than any training took."""

MAX_RANKS = 1_000_000


@dataclass(frozen=True, slots=True)
class Item:
    """One number, what it is, and where it comes from."""

    name: str
    value: Number
    unit: Unit
    formula: str
    source: str
    convention: str = ""
    """Which of several customs it follows, where there are several."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one question comes to: its items, in reading order."""

    title: str
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()
    """What the numbers leave out, and where a known tool says otherwise."""

    def __getitem__(self, name: str) -> Number:
        """Return the value of an item by its name."""
        for item in self.items:
            if item.name == name:
                return item.value
        raise KeyError(name)

    def to_plain(self) -> dict[str, Any]:
        """Return the estimate as a JSON object."""
        return {
            "title": self.title,
            "items": [asdict(item) for item in self.items],
            "notes": list(self.notes),
        }


def divide(value: Number | Fraction, by: Number | Fraction = 1) -> Number:
    """Return a quotient: an integer where it is one, otherwise a float."""
    if type(value) is int and type(by) is int:  # most of them, and the quickest
        whole, rest = divmod(value, by)
        return value / by if rest else whole
    if isinstance(value, float) or isinstance(by, float):
        return float(value) / float(by)
    exact = Fraction(value) / by
    return exact.numerator if exact.denominator == 1 else float(exact)


def check_count(
    name: str, value: object, *, least: int = 1, most: int = MAX_COUNT
) -> int:
    """Return a whole number that was given as an argument.

    Raises:
        EstimateError: no whole number, below ``least`` or beyond any machine.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise EstimateError(f"{name}: got {value!r}, expected a whole number")
    if not least <= value <= most:
        bound = f"at least {least:,}" if value < least else f"at most {most:,}"
        raise EstimateError(f"{name}: got {value}, expected {bound}")
    return value


def check_amount(name: str, value: object, *, zero: bool = False) -> Number:
    """Return a finite amount above zero (or from zero on).

    Raises:
        EstimateError: no number, NaN, infinite, negative, or zero where none fits.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise EstimateError(f"{name}: got {value!r}, expected a number")
    least = "zero or more" if zero else "more than zero"
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise EstimateError(f"{name}: got {value}, expected {least}")
    if value > MAX_AMOUNT:
        raise EstimateError(f"{name}: got {value:g}, expected at most {MAX_AMOUNT:g}")
    return value


def check_fraction(name: str, value: object) -> Number:
    """Return a share from 0 to 1.

    Raises:
        EstimateError: anything else.
    """
    share = check_amount(name, value, zero=True)
    if share > 1:
        raise EstimateError(f"{name}: got {share}, expected a share from 0 to 1")
    return share


def check_reserve(value: object) -> Number:
    """Return the share of a GPU that is kept free: from 0 to below 1.

    Raises:
        EstimateError: no share, or all of the GPU.
    """
    share = check_fraction("reserve", value)
    if share == 1:
        raise EstimateError(
            "reserve: got 1, expected a share below 1 (nothing would be left to use)"
        )
    return share


def check_choice(name: str, value: str, choices: Iterable[str]) -> str:
    """Return a word that is one of the choices.

    Raises:
        EstimateError: another word; the message names the near ones.
    """
    known = list(choices)
    if value in known:
        return value
    raise EstimateError(
        f"unknown {name}: got '{value}', expected {_offer(value, known)}"
    )


def _offer(value: str, known: Sequence[str]) -> str:
    """Return the choices, or only the near ones where they are many."""
    near = difflib.get_close_matches(str(value).lower(), known, n=3, cutoff=0.5)
    if len(known) > 8 and near:
        return f"perhaps {' or '.join(near)} ({len(known)} are known)"
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    return f"one of {', '.join(known)}{hint}"
