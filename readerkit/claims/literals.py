"""What the code of a default is worth: a literal, arithmetic of literals folded."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

_EMPTY: Mapping[str, Callable[[], Any]] = {
    "list": list,
    "tuple": list,
    "set": list,
    "dict": dict,
}
_FOLDED: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}
MAX_EXPONENT = 64


class NoLiteral(Exception):
    """Code whose value only running it would tell."""


class _Items(list[Any]):
    """What a set holds: each once, in any order."""


def literal_of(code: str, *, is_field: bool = False) -> Any:
    """Return the value of an expression; tuples and sets as lists.

    A field's default is looked up in its ``field(...)``.

    Raises:
        NoLiteral: any other code.
    """
    try:
        tree = ast.parse(f"({code}\n)", mode="eval").body
        return _value(_inside_field(tree) if is_field else tree)
    except (SyntaxError, ValueError, ArithmeticError, TypeError, MemoryError) as error:
        raise NoLiteral(str(error)) from None


def option_default(code: str) -> Any:
    """Return what a program has if an option is not given, by its ``add_argument``.

    Raises:
        NoLiteral: a default that is no literal; its code is the message.
    """
    call = ast.parse(f"({code}\n)", mode="eval").body
    assert isinstance(call, ast.Call)
    words = {word.arg: word.value for word in call.keywords}
    if "default" in words:
        try:
            return _value(words["default"])
        except (ValueError, ArithmeticError, TypeError):
            raise NoLiteral(ast.unparse(words["default"])) from None
    action = words.get("action")
    name = action.value if isinstance(action, ast.Constant) else None
    is_known = action is None or name is not None or _is_boolean(action)
    if None in words or not is_known:  # **more, or a class that may give one
        raise NoLiteral(ast.unparse(call))
    return {"store_true": False, "store_false": True}.get(str(name))


def _is_boolean(action: ast.expr) -> bool:
    """Tell whether this is argparse's own action of two options, None by default."""
    return ast.unparse(action).rpartition(".")[2] == "BooleanOptionalAction"


def is_equal(value: Any, other: Any) -> bool:
    """Tell whether two literals are the same; 1 is 1.0 and is not True."""
    if isinstance(value, _Items) and isinstance(other, list):
        others = _distinct(other)
        return len(value) == len(others) and all(_is_in(each, others) for each in value)
    if isinstance(value, list) and isinstance(other, list):
        pairs = zip(value, other, strict=False)
        return len(value) == len(other) and all(is_equal(a, b) for a, b in pairs)
    if isinstance(value, dict) and isinstance(other, dict):
        kept = {(type(key), key): each for key, each in other.items()}
        return len(value) == len(other) and all(
            (type(key), key) in kept and is_equal(each, kept[type(key), key])
            for key, each in value.items()
        )
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _is_in(value: Any, items: list[Any]) -> bool:
    return any(is_equal(value, each) for each in items)


def _distinct(items: list[Any]) -> _Items:
    """Return items without those that stand before."""
    kept = _Items()
    for each in items:
        if not _is_in(each, kept):
            kept.append(each)
    return kept


def _inside_field(tree: ast.expr) -> ast.expr:
    """Return the default that ``field(default=...)`` or its factory gives."""
    if not isinstance(tree, ast.Call) or ast.unparse(tree.func) not in (
        *("field", "dataclasses.field"),
    ):
        return tree
    words = {word.arg: word.value for word in tree.keywords}
    factory = words.get("default_factory")
    if isinstance(factory, ast.Lambda):
        return factory.body
    if isinstance(factory, ast.Name):
        return ast.Call(factory, [], [])
    return words.get("default", tree)


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, (bytes, complex)) or node.value is ...:
            raise ValueError("no literal of YAML")
        return node.value
    if isinstance(node, ast.Set):
        return _distinct([_value(each) for each in node.elts])
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(each) for each in node.elts]
    if isinstance(node, ast.Dict) and None not in node.keys:
        pairs = zip(node.keys, node.values, strict=True)
        return {_value(key): _value(value) for key, value in pairs if key}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        value = _value(node.operand)
        return -value if isinstance(node.op, ast.USub) else not value
    if isinstance(node, ast.BinOp) and type(node.op) in _FOLDED:
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, (ast.Pow, ast.LShift)) and abs(right) > MAX_EXPONENT:
            raise ValueError("a power beyond the bound")
        if isinstance(left, str) != isinstance(right, str):
            raise ValueError("no number")
        return _FOLDED[type(node.op)](left, right)
    if isinstance(node, ast.Call) and not (node.args or node.keywords):
        name = ast.unparse(node.func)
        if name in _EMPTY:
            return _EMPTY[name]()
    raise ValueError("no literal")
