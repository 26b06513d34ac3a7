"""What an experiment must look like: small, told what it tries, its figures named."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from readerkit.claims.literals import NoLiteral, is_equal, literal_of
from readerkit.model.language import Told

MAX_PROGRAM_LINES = 40


def program_fault(text: str, figures: Iterable[str]) -> str:
    """Return what is wrong with the shape of an experiment; or nothing."""
    if wrong := _shape_fault(text):
        return wrong
    unnamed = [name for name in figures if name not in text]
    if not unnamed or _makes_names(text):
        return ""
    return Told("prints no figure '{name}'", name=unnamed[0])


@cache
def _makes_names(text: str) -> bool:
    """Tell whether what a program prints has names that only a run can tell."""
    if "stdout" in text or "os.write" in text:
        return True
    nodes = [*ast.walk(ast.parse(text))]
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    prints = [each for each in calls if ast.unparse(each.func) == "print"]
    names = [
        each for each in nodes if isinstance(each, ast.Name) and each.id == "print"
    ]
    if len(names) > len(prints):  # by another name too
        return True
    said = [" ".join(map(_written, each.args)) for each in prints]
    lines = [line for text in said for line in text.splitlines()]
    return any("\0" in line.partition("=")[0] for line in lines)


def _written(node: ast.expr) -> str:
    """Return the letters of a string, with a zero for each part that is reckoned."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_written, node.values))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return "\0"


@cache
def _shape_fault(text: str) -> str:
    count = len(text.splitlines())
    if count > MAX_PROGRAM_LINES:
        most = MAX_PROGRAM_LINES
        return Told(
            "got {count} lines, expected at most {most}", count=count, most=most
        )
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        return Told("is no Python: {error}", error=error)
    if not ast.get_docstring(tree):
        return Told("says nowhere what it tries: expected a docstring first")
    try:
        settings = settings_of(tree)
    except NoLiteral as error:
        wrong: str = error.args[0]
        return wrong
    if (ranks := settings["RANKS"]) not in (1, 2):
        return Told("RANKS is {ranks}, expected 1 or 2", ranks=repr(ranks))
    return ""


def line_that_prints(text: str, figure: str = "") -> int:
    """Return the line of a program that prints a figure last, or that should."""
    tree = ast.parse(text)
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
    ]
    named = [each for each in calls if figure and figure in ast.unparse(each)]
    return max(each.lineno for each in named or calls or tree.body)


def unlike(figures: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """Return the expected figures that are not printed, or with another value."""
    return [
        name
        for name, value in expected.items()
        if name not in figures or not _is_same(figures[name], value)
    ]


def _is_same(printed: Any, value: Any) -> bool:
    if isinstance(printed, float) and isinstance(value, (int, float)):
        return math.isclose(printed, value, rel_tol=1e-9, abs_tol=1e-12)
    return is_equal(printed, value)


def say_figures(figures: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return figures as a program prints them; of one that is not there, that."""
    return ", ".join(
        f"{name} = {json.dumps(figures[name])}" if name in figures else f"no {name}"
        for name in names
    )


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
                    raise NoLiteral(Told("{name} is no literal", name=name)) from None
    return found
