"""Why a number that nobody foresaw is wrong: its factor to the key, and the formula."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from readerkit.model.expression import Number, calls_in, evaluate, parse_expression
from readerkit.model.formula_text import render
from readerkit.model.language import Told
from readerkit.quiz.messages import Remark
from readerkit.quiz.variant import format_number

_SLIPS = (2, 3, 4, 8, 1000, 1024, 1e6, 1024**2, 1e9, 1024**3)
_AS_IT_STANDS = {"min", "max", "ceil", "floor", "sqrt", "log2", "log2ceil"}
"""Calls that a reader can work out."""
_WHOLE_FLOAT = re.compile(r"\b(\d+?)(0{6,})?\.0\b")
CLOSE = 2e-3
"""How far, as a share, a factor may be from the one that it is said to be."""
MOST = 128
"""The largest number n of a question for which n/(n - 1) is named."""
MOST_READ = 100
"""Characters of a formula that somebody still follows."""


def usual_factors() -> list[tuple[float, str]]:
    """Return factors that slips leave in any question, as they are written."""
    found = list[tuple[float, str]]()
    for each in _SLIPS:
        name = format_number(each)
        found += [(each, name), (1 / each, f"1/{name}")]
    for power, sign in (1, ""), (2, "²"), (3, "³"):
        up, down = f"1024{sign}", f"1000{sign}"
        found += [(1.024**power, f"{up}/{down}"), (1.024**-power, f"{down}/{up}")]
    return found


def counts_in(values: Mapping[str, Number]) -> tuple[int, ...]:
    """Return the numbers of a question that may be counts, one too many or too few."""
    whole = (int(each) for each in values.values() if each == int(each))
    return tuple(dict.fromkeys(each for each in whole if 3 <= each <= MOST))


def factors_of(counts: Iterable[int]) -> list[tuple[float, str]]:
    """Return the usual factors, and n/(n - 1) for each of the counts.

    >>> factors_of([8])[-2:]
    [(1.1428571428571428, '8/7'), (0.875, '7/8')]
    """
    found = usual_factors()
    for n in counts:
        found += [(n / (n - 1), f"{n}/{n - 1}"), ((n - 1) / n, f"{n - 1}/{n}")]
    return found


def told_factor(value: float, key: float, counts: Iterable[int]) -> Told | None:
    """Return how many times the key a wrong number is; None where that says nothing.

    >>> str(told_factor(9, 8, [9]))
    'Yours is 9/8 times the answer.'
    """
    if not key or not value or (value < 0) != (key < 0):
        return None
    ratio = value / key
    near = (name for each, name in factors_of(counts) if abs(ratio / each - 1) <= CLOSE)
    factor = next(near, format_number(ratio))
    return Told("Yours is {factor} times the answer.", factor=factor)


def filled_in(
    formulas: Iterable[str], values: Mapping[str, Number]
) -> Iterator[tuple[str, str]]:
    """Yield each formula that a reader can work out, and the same with its numbers.

    >>> [*filled_in(["2 * (n - 1) / n * g / 1e9"], {"n": 8, "g": 4})]
    [('2 * (n - 1) / n * g / 1e9', '2 × (8 - 1) / 8 × 4 / 1e9')]
    """
    for formula in formulas:
        tree = parse_expression(formula)
        if calls_in(tree) <= _AS_IT_STANDS:
            yield formula, _WHOLE_FLOAT.sub(_short, render(tree, values))


def _short(found: re.Match[str]) -> str:
    return f"{found[1]}e{len(found[2])}" if found[2] else found[1]


def shown_formula(
    formulas: Iterable[str],
    values: Mapping[str, Number],
    accepts: Callable[[float], bool],
    key: str,
) -> tuple[Remark, ...]:
    """Return the first formula that gives the key, with its numbers; none at times."""
    for formula, filled in filled_in(formulas, values):
        if len(filled) > MOST_READ or formula in values:
            continue
        if accepts(evaluate(formula, values, {})):
            return (Remark(Told("{formula} = {key}.", formula=filled, key=key)),)
    return ()
