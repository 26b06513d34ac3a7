"""A bound that depends on the sizes of a run: ``2 * (world - 1)``.

Parsed into a tree of numbers, names and ``+ - * // min max``; nothing else is known,
so that text out of a book can neither call nor reach anything.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ANYTHING = "anything"
"""What values may be apart where they come out of memory that is not theirs."""
NAMES = ("world", "rank", "layers", "microbatches", "chunks", "parameters")
"""Sizes of a run that a bound may speak of; ``parameters`` counts tensors."""

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"min": min, "max": max}
MAX_LENGTH = 80
_EXPECTED = f"numbers, + - * //, min, max and the names {', '.join(NAMES)}"


@dataclass(frozen=True, slots=True)
class Count:
    """A bound as it was written."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Count:
        """Return a bound that ``evaluate`` understands.

        Raises:
            ValueError: anything else than such an expression; says what was expected.
        """
        if len(text) > MAX_LENGTH:
            raise ValueError(f"at most {MAX_LENGTH} characters")
        count = cls(text)
        try:
            count.evaluate(dict.fromkeys(NAMES, 1))
        except ZeroDivisionError:
            raise ValueError("no division by what may be zero") from None
        return count

    def evaluate(self, sizes: Mapping[str, int]) -> int | float:
        """Return its value for a run.

        Raises:
            ValueError: an expression that ``parse`` would refuse.
        """
        if self.text == ANYTHING:
            return math.inf
        try:
            tree = ast.parse(self.text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ValueError(_EXPECTED) from None
        return _evaluate(tree.body, sizes)


def _evaluate(node: ast.expr, sizes: Mapping[str, int]) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as number) if type(number) is not bool:
            return number
        case ast.Name(id=name) if name in NAMES:
            return sizes[name]
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            both = _evaluate(left, sizes), _evaluate(right, sizes)
            value: int | float = _OPERATORS[type(op)](*both)
            return value
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if (
            name in _FUNCTIONS and len(args) > 1
        ):
            least: int | float = _FUNCTIONS[name](*(_evaluate(a, sizes) for a in args))
            return least
    raise ValueError(_EXPECTED)
