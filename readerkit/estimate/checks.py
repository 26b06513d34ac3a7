"""Input that makes sense: whole numbers, amounts, shares and words, or an error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from readerkit.errors import EstimateError
from readerkit.estimate.quantity import Number, Quantity
from readerkit.wording.meant_name import did_you_mean, near_names

MAX_COUNT = 10**18
"""More than any model has parameters or any cluster bytes; a typing error beyond."""

MAX_AMOUNT = 1e30
"""More FLOPs than any training took."""

MAX_RANKS = 1_000_000


def check_count(
    name: str, value: object, *, least: int = 1, most: int = MAX_COUNT
) -> int:
    """Return a whole number that was given as an argument.

    Raises:
        EstimateError: no whole number, below ``least`` or beyond any machine.
    """
    if type(value) is not int:  # most are, and a search asks often
        if isinstance(value, Quantity):
            check_count(name, value.value, least=least, most=most)
            return value  # type: ignore[return-value]  # it stands in for its number
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
    if isinstance(value, Quantity):
        check_amount(name, value.value, zero=zero)
        return value  # type: ignore[return-value]  # it stands in for its number
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise EstimateError(f"{name}: got {value!r}, expected a number")
    least = "zero or more" if zero else "more than zero"
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise EstimateError(f"{name}: got {value}, expected {least}")
    if value > MAX_AMOUNT:
        raise EstimateError(f"{name}: got {value:g}, expected at most {MAX_AMOUNT:g}")
    return value


def check_training(name: str, tokens: object, *, of: int) -> Number:
    """Return the tokens of a training, of at least one step of so many.

    Raises:
        EstimateError: no number, or fewer.
    """
    found = check_amount(name, tokens)
    if found < of:
        raise EstimateError(
            f"{name}: got {found}, expected at least the {of:,} of one step"
        )
    return found


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
    near = near_names(str(value), known)
    if len(known) > 8 and near:
        return f"perhaps {' or '.join(near)} ({len(known)} are known)"
    hint = f" ({did_you_mean(*near)})" if near else ""
    return f"one of {', '.join(known)}{hint}"
