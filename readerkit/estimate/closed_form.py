"""A formula as data: an expression, and what each of its names may be.

The words of a numeric answer whose value is one expression are formulas; so is every
row of a worksheet (``item``). What has to choose between several is a function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, wraps
from inspect import signature
from typing import Any, TypeVar, cast

from readerkit.estimate.checks import (
    check_amount,
    check_choice,
    check_count,
    check_fraction,
)
from readerkit.estimate.quantity import Number, Quantity, express
from readerkit.model.expression import evaluate, names_in, parse_expression

_UNIT = r"(?<!per)(_bytes_per)?_s$"
Function = TypeVar("Function", bound=Callable[..., Any])


def check_argument(name: str, value: Any, *, whole: bool, zero: bool = False) -> Any:
    """Return a number that may be what its name says: a share, a count, an amount.

    Raises:
        EstimateError: it may not.
    """
    label = re.sub(_UNIT, "", name)
    if name.endswith("_fraction"):
        return check_fraction(label, value)
    if whole:
        return check_count(label, value, least=0 if zero else 1)
    return check_amount(label, value, zero=zero)


class ClosedForm:
    """A function whose value is one expression over its keyword arguments.

    >>> gpu_hours = ClosedForm("gpus × days × 24", whole="gpus")
    >>> gpu_hours(gpus=8, days=2)
    384

    Handed quantities, it returns one, with the formula by their names.
    """

    def __init__(
        self, text: str, *, whole: str = "", zero: str = "", **defaults: Number
    ) -> None:
        """Take an expression; which names are whole numbers, and which may be zero."""
        self.text, self.defaults = text, defaults
        self.whole, self.zero = whole.split(), zero.split()

    @cached_property
    def tree(self) -> ast.expr:
        """The expression, parsed when it is first asked for."""
        return parse_expression(self.text)

    @cached_property
    def names(self) -> set[str]:
        """What it is made of."""
        return names_in(self.tree)

    def __call__(self, **given: Any) -> Any:
        """Return the value for these arguments.

        Raises:
            EstimateError: an argument that cannot be.
            TypeError: one that is missing, or too many.
        """
        values: Mapping[str, Any] = self.defaults | given
        if values.keys() != self.names:
            missing, unknown = self.names - values.keys(), values.keys() - self.names
            problem = "unexpected" if unknown else "missing"
            raise TypeError(f"{problem} argument {min(unknown or missing)!r}")
        values = {
            name: check_argument(
                name, value, whole=name in self.whole, zero=name in self.zero
            )
            for name, value in values.items()
        }
        if any(isinstance(value, Quantity) for value in values.values()):
            return express(self.tree, values)
        return evaluate(self.tree, values)


def checked(
    *, zero: str = "", **choices: Iterable[Any]
) -> Callable[[Function], Function]:
    """Check what a function is given: numbers by their names and types, and words.

    ``zero``: numbers that may be none.
    """

    def add(function: Function) -> Function:
        types = {
            name: parameter.annotation
            for name, parameter in signature(function).parameters.items()
            if parameter.annotation in ("int", "Number") and name not in choices
        }
        may_be_zero = zero.split()

        @wraps(function)
        def call(**given: Any) -> Any:
            for name, known in choices.items():
                if name in given:
                    label = "ZeRO stage" if name == "stage" else name
                    check_choice(label, str(given[name]), map(str, known))
            for name, value in given.items():
                if name in types:
                    given[name] = check_argument(
                        name,
                        value,
                        whole=types[name] == "int",
                        zero=name in may_be_zero,
                    )
            return function(**given)

        return cast(Function, call)

    return add
