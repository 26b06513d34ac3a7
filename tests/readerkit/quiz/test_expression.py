"""Formulas: what they compute, and that nothing else gets in."""

from __future__ import annotations

import pytest

from readerkit.quiz.expression import (
    ExpressionError,
    evaluate,
    names_in,
    parse_expression,
)


def double(*, value: float, how: str = "plain", whole: bool = False) -> float:
    return round(2 * value) if whole or how == "round" else 2 * value


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("1 + 2 * 3", 7),
        ("16 * p / n", 32),
        ("-p + +n", -8),
        ("p // 3 + p % 3", 6),
        ("2 ** 10", 1024),
        ("ceil(p / 3) + floor(p / 3)", 11),
        ("max(p, n) - min(p, n)", 8),
        ("sqrt(p) * log2(p)", 16),
        ("double(value=p)", 32),
        ('double(value=p / 3, how="round")', 11),
        ("double(value=p / 3, whole=True)", 11),
        (" ( p ) ", 16),
        ("1e9 * 7", 7e9),
    ],
)
def test_formula_has_its_value(formula, value):
    assert evaluate(formula, {"p": 16, "n": 8}, {"double": double}) == value


@pytest.mark.parametrize(
    "formula",
    [
        "",
        "p +",
        "p; n",
        "p = 3",
        "lambda: 1",
        "[x for x in (1, 2)]",
        "p if n else 1",
        "p and n",
        "p < n",
        "p.real",
        "p[0]",
        "'words'",
        "True",
        "None",
        "1j",
        "p @ n",
        "~p",
        "f'{p}'",
        "().__class__",
        "__import__('os')",
        "double(**{})",
        "double(*[1])",
        "double(value='a' + 'b')",
        "p(1)(2)",
        "await p",
        "(p := 3)",
        "\0",
        "(" * 300 + ")" * 300,
        "1 + " * 200 + "1",
    ],
)
def test_text_outside_the_language_is_refused(formula):
    with pytest.raises(ExpressionError):
        parse_expression(formula)


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("1 / (p - p)", "division by zero"),
        ("p // 0", "division or modulo by zero"),
        ("p ** 1000", "exponent 1000"),
        ("9 ** 64 * 9 ** 64", "beyond"),
        ("(0 - 8) ** 0.5", "expected a number"),
        ("q", "unknown name 'q'"),
        ("open(1)", "unknown function 'open'"),
        ("double(1)", "positional"),
        ("double(value=p, other=1)", "other"),
        ("double(value='p')", "got 'pp', expected a number"),
        ("log2(0)", "domain"),
        ("max()", "max"),
    ],
)
def test_formula_without_a_value_says_why(formula, why):
    with pytest.raises(ExpressionError, match=why.replace("(", r"\(")):
        evaluate(formula, {"p": 16}, {"double": double})


def test_names_of_a_formula_are_its_parameters_and_not_its_functions():
    assert names_in(parse_expression("ceil(p / n) + double(value=m)")) == {
        "p",
        "n",
        "m",
    }
