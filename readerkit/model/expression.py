"""The one language of formulas: keys, bounds, and what quantities are made of.

Numbers, names, ``+ - * / // % **``, parentheses, ``ceil exp floor log2 log2ceil max min
sqrt``, and calls of functions that a caller hands in; their arguments may also be
words, and those with a keyword True or False. The signs of print are read too: ``×``,
``−``, ``²``. The text is parsed with Python's grammar and walked node by node; nothing
is compiled or evaluated by Python, and every expression ends: there are no loops, and
powers are bounded.

Whole numbers and their quotients are exact, however large; a decimal fraction is a
float, and so is what it is combined with.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from readerkit.errors import ReaderkitError

if TYPE_CHECKING:
    from fractions import Fraction

Number = int | float
Exact: TypeAlias = "int | float | Fraction"
"""A number as it is computed with: quotients of whole numbers are not rounded."""
Functions = Mapping[str, Callable[..., object]]

MAX_CHARACTERS = 4_000
MAX_DEPTH = 100
"""Of operations in one another."""
MAX_EXPONENT = 64
MAX_MAGNITUDE = 10**150
_SIGNS = str.maketrans(
    {"×": "*", "·": "*", "\N{MINUS SIGN}": "-", "²": "**2", "³": "**3"}
)


class ExpressionError(ReaderkitError):
    """A formula that is no expression, or has no value for these names."""


# --- 1. what may be computed ----------------------------------------------------------


def divide(left: Exact, right: Exact) -> Exact:
    """Return a quotient: exact where both are."""
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    if not right:
        raise ZeroDivisionError("division by zero")
    from fractions import Fraction  # most commands have none

    return simple(Fraction(left) / right)


def power(base: Exact, exponent: Exact) -> Exact:
    """Return a power with a bounded exponent: exact where both are whole.

    Raises:
        ExpressionError: an exponent beyond the bound.
    """
    if not -MAX_EXPONENT <= exponent <= MAX_EXPONENT:
        raise ExpressionError(
            f"exponent {exponent}: expected at most {MAX_EXPONENT} either way"
        )
    if isinstance(exponent, int) and not isinstance(base, float):
        from fractions import Fraction

        return simple(Fraction(base) ** exponent)
    return float(base) ** float(exponent)  # type: ignore[no-any-return]


def log2ceil(number: Exact) -> int:
    """Return the least whole k with 2^k of at least this: the depth of a tree."""
    if number <= 0:
        raise ValueError("log2ceil of what is not positive")
    whole = math.ceil(number)
    return (whole - 1).bit_length()


def simple(value: Exact) -> Exact:
    """Return a whole fraction as a whole number."""
    if not isinstance(value, (int, float)) and value.denominator == 1:
        return value.numerator
    return value


def plain(value: Exact) -> Number:
    """Return a number as others take it: whole, or a float."""
    value = simple(value)
    return value if isinstance(value, (int, float)) else float(value)


BINARY: Mapping[type[ast.operator], Callable[[Exact, Exact], Exact]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: divide,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: power,
}
FUNCTIONS: Mapping[str, Callable[..., Exact]] = {
    "ceil": math.ceil,
    "exp": math.exp,
    "floor": math.floor,
    "log2": math.log2,
    "log2ceil": log2ceil,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
}


def finite(value: object) -> Exact:
    """Return the value if it is a finite number.

    Raises:
        ExpressionError: anything else, infinity among it.
    """
    if isinstance(value, bool) or not is_exact(value):
        raise ExpressionError(f"got {value!r}, expected a number")
    if not -MAX_MAGNITUDE < value < MAX_MAGNITUDE:  # an int of many digits is none
        raise ExpressionError(f"a value beyond {MAX_MAGNITUDE:.0e}")
    if isinstance(value, (int, float)):
        return value
    return float(value) if value.denominator > MAX_MAGNITUDE else simple(value)


def is_exact(value: object) -> TypeGuard[Exact]:
    """Return whether a value is a number, a quotient of whole ones among them."""
    if isinstance(value, (int, float)):
        return True
    from fractions import Fraction  # most commands have none

    return isinstance(value, Fraction)


# --- 2. text to a tree ----------------------------------------------------------------


@lru_cache(maxsize=1024)
def parse_expression(text: str) -> ast.expr:
    """Return the checked tree of a formula.

    Raises:
        ExpressionError: text that is not in the language.
    """
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(
            f"formula is too long: got {len(text)} characters, "
            f"expected at most {MAX_CHARACTERS}"
        )
    try:
        tree = ast.parse(text.translate(_SIGNS).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        problem = getattr(error, "msg", None) or error
        raise ExpressionError(f"not a formula: got '{text}': {problem}") from None
    if _depth(tree) > MAX_DEPTH:
        raise ExpressionError(f"formula is nested more than {MAX_DEPTH} deep")
    # A word can only choose among what a function offers: nothing computes with it.
    words = {id(node) for call in ast.walk(tree) for node in _words_of(call)}
    for node in _walk(tree):
        problem = "" if id(node) in words else _problem(node)
        if problem:
            raise ExpressionError(f"in '{text}': {problem}")
    return tree


def _depth(tree: ast.expr) -> int:
    depth, level = 0, list[ast.AST]([tree])
    while level and depth <= MAX_DEPTH:
        depth, level = (
            depth + 1,
            [n for one in level for n in ast.iter_child_nodes(one)],
        )
    return depth


def names_in(tree: ast.expr) -> set[str]:
    """Return the names that a formula needs values for."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and id(node) not in called
    }


def calls_in(tree: ast.expr) -> set[str]:
    """Return the functions that a formula calls, the built-in ones left out."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {func.id for func in calls if isinstance(func, ast.Name)} - set(FUNCTIONS)


def _walk(tree: ast.expr) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if not isinstance(node, (ast.operator, ast.unaryop, ast.expr_context)):
            yield node


def _words_of(call: ast.AST) -> Iterator[ast.AST]:
    """Yield the arguments of a call that are words; of a switch its keyword tells."""
    if isinstance(call, ast.Call):
        yield from (each for each in call.args if _is_constant(each, str))
        named = (each.value for each in call.keywords)
        yield from (each for each in named if _is_constant(each, (str, bool)))


def _is_constant(node: ast.AST, kind: type | tuple[type, ...]) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, kind)


def _problem(node: ast.AST) -> str:
    """Return the reason why a node is outside the language; empty: it belongs."""
    if isinstance(node, ast.Constant):
        is_number = type(node.value) in (int, float)
        return "" if is_number else f"got {node.value!r}, expected a number"
    if isinstance(node, ast.BinOp):
        known = type(node.op) in BINARY
        return "" if known else f"unknown operator {type(node.op).__name__}"
    if isinstance(node, ast.UnaryOp):
        known = isinstance(node.op, (ast.USub, ast.UAdd))
        return "" if known else f"unknown operator {type(node.op).__name__}"
    if isinstance(node, ast.Call):
        named = isinstance(node.func, ast.Name)
        starred = any(word.arg is None for word in node.keywords)
        return "" if named and not starred else "expected a call of a plain name"
    if isinstance(node, (ast.Name, ast.keyword)):
        return ""
    return f"got {type(node).__name__}, expected numbers, names, + - * / and calls"


# --- 3. a tree to its value -----------------------------------------------------------


def evaluate(
    formula: str | ast.expr,
    names: Mapping[str, Exact] | None = None,
    functions: Functions | None = None,
) -> Number:
    """Return the value of a formula.

    >>> evaluate("16 * params / ranks", {"params": 8, "ranks": 4})
    32
    >>> evaluate("1 / 3 * 3")
    1

    Raises:
        ExpressionError: a formula without a finite value.
    """
    names = names or {}
    tree = parse_expression(formula) if isinstance(formula, str) else formula
    try:
        return plain(_value(tree, names, functions or {}))
    except (ArithmeticError, ValueError, TypeError) as error:
        text = formula if isinstance(formula, str) else ast.unparse(formula)
        shown = ", ".join(f"{name}={value}" for name, value in names.items())
        raise ExpressionError(f"'{text}' with {shown}: {error}") from None


def _value(node: ast.expr, names: Mapping[str, Exact], functions: Functions) -> Exact:
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, (int, float))
        if not math.isfinite(node.value):  # Python reads 1e400 as infinity
            raise OverflowError("a number beyond any float")
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise ExpressionError(
                f"unknown name '{node.id}': expected one of {', '.join(names) or '-'}"
            )
        return names[node.id]
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand, names, functions)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left = _value(node.left, names, functions)
        right = _value(node.right, names, functions)
        return finite(BINARY[type(node.op)](left, right))
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return _called(node, node.func.id, names, functions)


def _called(
    node: ast.Call, name: str, names: Mapping[str, Exact], functions: Functions
) -> Exact:
    given, own = functions.get(name), FUNCTIONS.get(name)
    if given is None and own is None:
        known = ", ".join(sorted({*functions, *FUNCTIONS}))
        raise ExpressionError(f"unknown function '{name}': expected one of {known}")

    def argument(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        return _value(node, names, functions)

    values = [argument(each) for each in node.args]
    keywords = {str(word.arg): argument(word.value) for word in node.keywords}
    if own is not None and given is None:
        return finite(own(*values, **keywords))
    assert given is not None
    values = [_plain_or_word(value) for value in values]
    others = {key: _plain_or_word(value) for key, value in keywords.items()}
    try:
        return finite(given(*values, **others))
    except ReaderkitError as error:
        raise ExpressionError(f"{name}: {error}") from None


def _plain_or_word(value: Any) -> Any:
    return plain(value) if is_exact(value) else value
