"""A formula as its field writes it, and with its numbers: what is printed of it."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from readerkit.model.expression import Exact, is_exact

_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(1, 6)
_LEVELS: Mapping[type[ast.operator], tuple[int, str]] = {
    ast.Add: (_SUM, " + "),
    ast.Sub: (_SUM, " - "),
    ast.Mult: (_PRODUCT, " × "),
    ast.Div: (_PRODUCT, " / "),
    ast.FloorDiv: (_PRODUCT, " // "),
    ast.Mod: (_PRODUCT, " % "),
    ast.Pow: (_POWER, "**"),
}
MAX_SYMBOL = 3
"""Letters of a name that may stand beside another without a sign between: s b h."""


def render(tree: ast.expr, names: Mapping[str, Exact] | None = None) -> str:
    """Return a formula as its field writes it; with ``names``, with their numbers.

    What is returned with numbers is in the language, and has the formula's value.

    >>> from readerkit.model.expression import parse_expression
    >>> tree = parse_expression("2 * s * b * h * (1 + a / t)")
    >>> render(tree), render(tree, {"s": 8, "b": 2, "h": 3, "a": 4, "t": 5})
    ('2 s b h (1 + a / t)', '2 × 8 × 2 × 3 × (1 + 4 / 5)')
    """
    return _render(tree, names)[0]


def number_text(value: Exact) -> str:
    """Return a number with all of its digits."""
    if isinstance(value, (int, float)):
        return repr(value)
    return f"{value.numerator} / {value.denominator}"


def _render(node: ast.expr, names: Mapping[str, Exact] | None) -> tuple[str, int]:
    """Return a node's text, and how tightly it holds together."""
    if isinstance(node, ast.Name) and names is None:
        return node.id, _ATOM
    if isinstance(node, (ast.Name, ast.Constant)):
        assert names is not None or isinstance(node, ast.Constant)
        value = node.value if isinstance(node, ast.Constant) else (names or {})[node.id]
        assert is_exact(value)
        level = _SIGN if value < 0 else _ATOM
        whole = isinstance(value, (int, float))
        return number_text(value), level if whole else _PRODUCT
    if isinstance(node, ast.UnaryOp):
        text = _within(node.operand, names, _SIGN)
        return f"-{text}" if isinstance(node.op, ast.USub) else text, _SIGN
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        inside = ", ".join(_render(each, names)[0] for each in node.args)
        return f"{node.func.id}({inside})", _ATOM
    assert isinstance(node, ast.BinOp)
    level, sign = _LEVELS[type(node.op)]
    right = _within(node.right, names, level + (level < _POWER))
    left = _within(node.left, names, level + (level == _POWER))
    beside = isinstance(node.op, ast.Mult) and names is None
    if beside and _stands_beside(node.left) and _may_follow(node.right):
        sign = " "
    return f"{left}{sign}{right}", level


def _within(node: ast.expr, names: Mapping[str, Exact] | None, level: int) -> str:
    text, own = _render(node, names)
    return text if own >= level else f"({text})"


def _stands_beside(node: ast.expr) -> bool:
    """Whether a factor may be followed by another without a sign: 2, s, s b."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mult) and (
            _stands_beside(node.left) and _may_follow(node.right)
        )
    return isinstance(node, ast.Constant) or _is_symbol(node)


def _may_follow(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):  # in parentheses
        return _LEVELS[type(node.op)][0] == _SUM
    return _is_symbol(node)


def _is_symbol(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and len(node.id) <= MAX_SYMBOL
