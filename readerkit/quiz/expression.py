"""Keys as formulas: a small language over declared names, never Python evaluation.

Numbers, names, ``+ - * / // % **``, parentheses, and calls of functions that the caller
hands in; their keyword arguments may also be words and True or False. The text is
parsed with Python's grammar and walked node by node; nothing is compiled or evaluated
by Python, and every expression ends: there are no loops, and powers are bounded.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from readerkit.errors import ReaderkitError

Number = int | float
Functions = Mapping[str, Callable[..., object]]

MAX_CHARACTERS = 400
MAX_EXPONENT = 64
MAX_MAGNITUDE = 1e60

_BINARY: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_OWN: Mapping[str, Callable[..., Number]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
}


class ExpressionError(ReaderkitError):
    """A formula that is no expression, or has no value for these names."""


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
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        problem = getattr(error, "msg", None) or error
        raise ExpressionError(f"not a formula: got '{text}': {problem}") from None
    # A word can only choose among what a function offers: nothing computes with it.
    words = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    for node in _walk(tree):
        problem = "" if id(node) in words and _is_word(node) else _problem(node)
        if problem:
            raise ExpressionError(f"in '{text}': {problem}")
    return tree


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
    return {func.id for func in calls if isinstance(func, ast.Name)} - set(_OWN)


def evaluate(text: str, names: Mapping[str, Number], functions: Functions) -> Number:
    """Return the value of a formula.

    >>> evaluate("16 * params / ranks", {"params": 8, "ranks": 4}, {})
    32.0

    Raises:
        ExpressionError: a formula without a finite value.
    """
    tree = parse_expression(text)
    try:
        value = _value(tree, names, functions)
    except (ArithmeticError, ValueError, TypeError) as error:
        shown = ", ".join(f"{name}={value}" for name, value in names.items())
        raise ExpressionError(f"'{text}' with {shown}: {error}") from None
    return value


def _walk(tree: ast.expr) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if not isinstance(node, (ast.operator, ast.unaryop, ast.expr_context)):
            yield node


def _is_word(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bool))


def _problem(node: ast.AST) -> str:
    """Return what keeps a node out of the language; empty: it belongs."""
    if isinstance(node, ast.Constant):
        is_number = type(node.value) in (int, float)
        return "" if is_number else f"got {node.value!r}, expected a number"
    if isinstance(node, ast.BinOp):
        known = type(node.op) in _BINARY
        return "" if known else f"unknown operator {type(node.op).__name__}"
    if isinstance(node, ast.UnaryOp):
        known = isinstance(node.op, (ast.USub, ast.UAdd))
        return "" if known else f"unknown operator {type(node.op).__name__}"
    if isinstance(node, ast.Call):
        plain = isinstance(node.func, ast.Name)
        starred = any(word.arg is None for word in node.keywords)
        return "" if plain and not starred else "expected a call of a plain name"
    if isinstance(node, (ast.Name, ast.keyword)):
        return ""
    return f"got {type(node).__name__}, expected numbers, names, + - * / and calls"


def _value(node: ast.expr, names: Mapping[str, Number], functions: Functions) -> Number:
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, (int, float))
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
        if isinstance(node.op, ast.Pow) and abs(right) > MAX_EXPONENT:
            raise ExpressionError(
                f"exponent {right}: expected at most {MAX_EXPONENT} either way"
            )
        return _finite(_BINARY[type(node.op)](left, right))
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    name = node.func.id
    function = functions.get(name) or _OWN.get(name)
    if function is None:
        known = ", ".join(sorted({*functions, *_OWN}))
        raise ExpressionError(f"unknown function '{name}': expected one of {known}")
    values = [_value(each, names, functions) for each in node.args]
    keywords = {
        str(word.arg): word.value.value
        if isinstance(word.value, ast.Constant)
        else _value(word.value, names, functions)
        for word in node.keywords
    }
    try:
        return _finite(function(*values, **keywords))
    except ReaderkitError as error:
        raise ExpressionError(f"{name}: {error}") from None


def _finite(value: object) -> Number:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ExpressionError(f"got {value!r}, expected a number")
    if not abs(value) < MAX_MAGNITUDE:  # an int of a million digits is not finite here
        raise ExpressionError(f"a value beyond {MAX_MAGNITUDE:g}")
    return value
