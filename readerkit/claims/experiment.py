"""What an experiment must look like: small, told what it tries, its figures named."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from readerkit.claims.literals import NoLiteral, literal_of

MAX_PROGRAM_LINES = 40


def program_fault(text: str, figures: Iterable[str]) -> str:
    """Return what is wrong with the shape of an experiment; or nothing."""
    unnamed = [name for name in figures if name not in text]
    return _shape_fault(text) or (f"prints no figure '{unnamed[0]}'" if unnamed else "")


@lru_cache
def _shape_fault(text: str) -> str:
    count = len(text.splitlines())
    if count > MAX_PROGRAM_LINES:
        return f"got {count} lines, expected at most {MAX_PROGRAM_LINES}"
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        return f"is no Python: {error}"
    if not ast.get_docstring(tree):
        return "says nowhere what it tries: expected a docstring first"
    try:
        settings = settings_of(tree)
    except NoLiteral as error:
        return str(error)
    if settings["RANKS"] not in (1, 2):
        return f"RANKS is {settings['RANKS']!r}, expected 1 or 2"
    return ""


def settings_of(tree: ast.Module) -> dict[str, Any]:
    """Return the constants by which an experiment says how it is run.

    Raises:
        NoLiteral: a constant that is none.
    """
    found: dict[str, Any] = {"RANKS": 1, "UPSTREAMS": []}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in found:
                try:
                    found[name] = literal_of(ast.unparse(node.value))
                except NoLiteral:
                    raise NoLiteral(f"{name} is no literal") from None
    return found
