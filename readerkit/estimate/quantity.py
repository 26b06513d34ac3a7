"""A number that knows how it came about: its value, its formula, and its substitution.

The functions of this package compute with plain numbers. Handed quantities instead, the
same code leaves behind the expression that it computed:

>>> s, b, t = (Quantity.given(*each) for each in (("s", 8), ("b", 2), ("t", 3)))
>>> kept = divide(34 * s * b, t)
>>> kept.value, kept.formula, kept.substitution
(181.33333333333334, '34 s b / t', '34 × 8 × 2 / 3')

So a formula cannot say anything else than what was computed. Bytes, parameters and
FLOPs stay exact: whole numbers are never rounded, and their quotients only at the end.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, total_ordering
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from readerkit.estimate.sizes import Size
from readerkit.model.expression import (
    BINARY,
    FUNCTIONS,
    Exact,
    finite,
    parse_expression,
    plain,
)
from readerkit.model.formula_text import render
from readerkit.model.language import Say

if TYPE_CHECKING:
    from fractions import Fraction

Number = int | float
"""What is computed with; a quantity stands in for one."""

_ONE_LEVEL = {
    (ast.Add, ast.Add),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Mult),
    (ast.Mult, ast.Div),
}
"""Pairs of operators where x + (y - z) is (x + y) - z, exactly."""


class Input(NamedTuple):
    """What a name of a formula stands for."""

    value: Exact
    means: str = ""
    """Of a symbol; empty for the name of another item."""


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An expression over named inputs, and its value."""

    exact: Exact
    tree: ast.expr
    inputs: Mapping[str, Input]

    @classmethod
    def given(cls, name: str, value: Any, means: str = "") -> Any:
        """Return a number that is not computed here, under its name."""
        exact = value.exact if isinstance(value, Quantity) else finite(value)
        return cls(exact, ast.Name(name, ast.Load()), {name: Input(exact, means)})

    @property
    def value(self) -> Number:
        """The number itself: whole, or a float."""
        return plain(self.exact)

    @property
    def formula(self) -> str:
        """What was computed, with the names: ``2 s b h / t``."""
        return render(self.tree)

    @property
    def substitution(self) -> str:
        """What was computed, with the numbers; in the language of expressions."""
        return render(self.tree, {name: i.value for name, i in self.inputs.items()})

    def said(self, say: Say) -> Quantity:
        """Return the same under names of another language."""
        named = self.inputs.items()
        inputs = {say(key): Input(one.value, say(one.means)) for key, one in named}
        return Quantity(self.exact, _said(self.tree, say), inputs)

    def __add__(self, other: Any) -> Quantity:
        """Return a sum; nothing added is no step of a formula."""
        return self if _is(other, 0) else _join(ast.Add(), self, other)

    def __radd__(self, other: Any) -> Quantity:
        """Return a sum."""
        return self if _is(other, 0) else _join(ast.Add(), other, self)

    def __sub__(self, other: Any) -> Quantity:
        """Return a difference."""
        return self if _is(other, 0) else _join(ast.Sub(), self, other)

    def __rsub__(self, other: Any) -> Quantity:
        """Return a difference."""
        return _join(ast.Sub(), other, self)

    def __mul__(self, other: Any) -> Any:
        """Return a product; nothing is left of none."""
        if _is(other, 0):
            return 0
        return self if _is(other, 1) else _join(ast.Mult(), self, other)

    def __rmul__(self, other: Any) -> Any:
        """Return a product."""
        if _is(other, 0):
            return 0
        return self if _is(other, 1) else _join(ast.Mult(), other, self)

    def __truediv__(self, other: Any) -> Quantity:
        """Return a quotient."""
        return self if _is(other, 1) else _join(ast.Div(), self, other)

    def __rtruediv__(self, other: Any) -> Any:
        """Return a quotient; nothing is left of none."""
        return 0 if _is(other, 0) else _join(ast.Div(), other, self)

    def __eq__(self, other: object) -> bool:
        """Whether it has the value of another."""
        return self.exact == _exact(other)

    __hash__ = None  # type: ignore[assignment]  # equal values come about differently

    def __lt__(self, other: Any) -> bool:
        """Whether its value is less."""
        return self.exact < _exact(other)

    def __bool__(self) -> bool:
        """Whether there is any of it."""
        return self.exact != 0

    def __index__(self) -> int:
        """Return a whole value, for a range of so many."""
        if not isinstance(self.exact, int):
            raise TypeError(f"got {self.exact}, expected a whole number")
        return self.exact

    def __float__(self) -> float:
        """Return the value."""
        return float(self.exact)

    def __format__(self, spec: str) -> str:
        """Return the value as text."""
        return format(self.value, spec)


def express(formula: str | ast.expr, names: Mapping[str, Any]) -> Any:
    """Return an expression over quantities as one that knows how it came about.

    >>> express("2 * s * b", {"s": Quantity.given("s", 8), "b": 3}).formula
    '6 s'

    Raises:
        ExpressionError: text that is not in the language.
        KeyError: a name that stands for nothing.
    """
    tree = parse_expression(formula) if isinstance(formula, str) else formula
    if isinstance(tree, ast.Constant):
        return tree.value
    if isinstance(tree, ast.Name):
        return names[tree.id]
    if isinstance(tree, ast.UnaryOp):
        return 0 - express(tree.operand, names)
    if isinstance(tree, ast.Call):
        assert isinstance(tree.func, ast.Name)
        return _call(tree.func.id, *(express(each, names) for each in tree.args))
    assert isinstance(tree, ast.BinOp)
    left, right = express(tree.left, names), express(tree.right, names)
    if isinstance(tree.op, ast.Div):
        return divide(left, right)
    return BINARY[type(tree.op)](left, right)


def named(value: Number, name: str, means: str = "") -> Number:
    """Return a quantity under a name of its own; a plain number stays as it is."""
    return Quantity.given(name, value, means) if isinstance(value, Quantity) else value


def named_sizes(one: Any, sizes: Mapping[str, Size]) -> dict[str, Any]:
    """Return the sizes of a dataclass as quantities, each under its symbol."""
    return {
        name: Quantity.given(size.symbol, getattr(one, name), size.means)
        for name, size in sizes.items()
        if getattr(one, name) > size.above
    }


def divide(value: Number | Fraction, by: Number = 1) -> Number:
    """Return a quotient: an integer where it is one, otherwise a float.

    Of quantities it is a quantity.
    """
    if type(value) is int and type(by) is int:  # most of them, and the quickest
        whole, rest = divmod(value, by)
        return value / by if rest else whole
    quotient: Any = value / by
    return (
        cast("Number", quotient) if isinstance(quotient, Quantity) else plain(quotient)
    )


def ceil_divide(value: Number, by: Number) -> Number:
    """Return a quotient, rounded up."""
    if isinstance(value, Quantity) or isinstance(by, Quantity):
        return _call("ceil", divide(value, by))
    return -(-value // by)


def minimum(one: Number, other: Number) -> Number:
    """Return the lesser of two."""
    if isinstance(one, Quantity) or isinstance(other, Quantity):
        return _call("min", one, other)
    return one if one < other else other


def maximum(one: Number, other: Number) -> Number:
    """Return the larger of two."""
    if isinstance(one, Quantity) or isinstance(other, Quantity):
        return _call("max", one, other)
    return one if one > other else other


def log2ceil(value: Number) -> Number:
    """Return the logarithm to base 2 of a whole number, rounded up."""
    if isinstance(value, Quantity):
        return _call("log2ceil", value)
    return plain(FUNCTIONS["log2ceil"](value))


def _is(value: object, number: int) -> bool:
    return type(value) is int and value == number


def _exact(value: Any) -> Exact:
    return value.exact if isinstance(value, Quantity) else value


def _tree(value: Any) -> ast.expr:
    return value.tree if isinstance(value, Quantity) else ast.Constant(value)


def _said(tree: ast.expr, say: Say) -> ast.expr:
    """Return an expression with its names in another language."""
    if isinstance(tree, ast.Name):
        return ast.Name(say(tree.id), tree.ctx)
    if isinstance(tree, ast.BinOp):
        return ast.BinOp(_said(tree.left, say), tree.op, _said(tree.right, say))
    if isinstance(tree, ast.Call):
        return ast.Call(tree.func, [_said(each, say) for each in tree.args], [])
    return tree  # a number


def _join(operator: ast.operator, left: Any, right: Any) -> Quantity:
    value = finite(BINARY[type(operator)](_exact(left), _exact(right)))
    names = _inputs(left, right)
    trees = _tree(left), _tree(right)
    if isinstance(value, float):  # in the order in which it was rounded
        return Quantity(value, ast.BinOp(trees[0], operator, trees[1]), names)
    tidy = _product if isinstance(operator, ast.Mult) else partial(_chain, operator)
    return Quantity(value, tidy(*trees), names)


def _chain(operator: ast.operator, left: ast.expr, right: ast.expr) -> ast.expr:
    """Return ``a × b / c`` for ``a × (b / c)``: the same where nothing is rounded."""
    if isinstance(right, ast.BinOp) and (type(operator), type(right.op)) in _ONE_LEVEL:
        inner = _chain(operator, left, right.left)
        return ast.BinOp(inner, right.op, right.right)
    return ast.BinOp(left, operator, right)


def _product(left: ast.expr, right: ast.expr) -> ast.expr:
    """Return ``6 a b`` for ``a × 3 × 2 b``: numbers first, as one."""
    (one, a), (other, b) = _coefficient(left), _coefficient(right)
    rest = _chain(ast.Mult(), a, b) if a and b else a or b
    return _scale(one * other, rest) if rest else ast.Constant(one * other)


def _coefficient(tree: ast.expr) -> tuple[int, ast.expr | None]:
    """Return the whole number that a product begins with, and the rest."""
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
        return tree.value, None
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Mult, ast.Div)):
        number, rest = _coefficient(tree.left)
        if rest:
            return number, ast.BinOp(rest, tree.op, tree.right)
        if isinstance(tree.op, ast.Mult):
            return number, tree.right
    return 1, tree


def _scale(number: int, tree: ast.expr) -> ast.expr:
    if number == 1:
        return tree
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Mult, ast.Div)):
        return ast.BinOp(_scale(number, tree.left), tree.op, tree.right)
    return ast.BinOp(ast.Constant(number), ast.Mult(), tree)


def _call(name: str, *values: Any) -> Number:
    value = finite(FUNCTIONS[name](*map(_exact, values)))
    function = ast.Name(name, ast.Load())
    tree = ast.Call(function, [_tree(each) for each in values], [])
    return cast(Number, Quantity(value, tree, _inputs(*values)))


def _inputs(*values: Any) -> Mapping[str, Input]:
    """Return all names; one that stands for two numbers is a mistake of the code."""
    found: dict[str, Input] = {}
    for value in values:
        for name, one in value.inputs.items() if isinstance(value, Quantity) else ():
            if found.setdefault(name, one).value != one.value:
                other = found[name].value
                raise ValueError(f"{name}: both {other} and {one.value} in one formula")
    return found
