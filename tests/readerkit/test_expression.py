"""Formulas: what they compute, and that nothing else gets in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from readerkit.model.expression import (
    ExpressionError,
    evaluate,
    names_in,
    parse_expression,
)
from readerkit.model.formula_text import render


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
        "'os' + f('os')",
        "f(True)",
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
        ("9 ** 64 * 9 ** 64 * 9 ** 64", "beyond"),
        ("1e400", "beyond"),
        ("9" * 400, "int too large"),
        ("(0 - 8) ** 0.5", "expected a number"),
        ("q", "unknown name 'q'"),
        ("__import__('os')", "unknown function '__import__'"),
        ("max('a', 'b')", "got 'b', expected a number"),
        ("ceil('a')", "ceil"),
        ("double('p')", "positional"),
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


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("1 / 3 * 3", 1),
        ("10 ** 40 + 1 - 10 ** 40", 1),
        ("(2 * 10 ** 30 + 2) / 2", 10**30 + 1),
        ("2 ** -2 * 4", 1),
        ("7 / 2 // 1", 3),
        ("ceil(10 ** 30 / 3)", 333_333_333_333_333_333_333_333_333_334),
        ("log2ceil(2 ** 60 + 1)", 61),
        ("log2ceil(1)", 0),
    ],
)
def test_whole_numbers_and_their_quotients_are_exact(formula, value):
    got = evaluate(formula)
    assert (got, type(got)) == (value, int)


def test_signs_of_print_are_read():
    assert evaluate("2 × 3 · 4 \N{MINUS SIGN} 5²") == -1


@pytest.mark.parametrize(
    ("formula", "printed"),
    [
        ("2*s*b*h/t", "2 s b h / t"),
        ("s*b*h*(34 + 5*a*s/h)", "s b h (34 + 5 a s / h)"),
        ("h*2*3", "h × 2 × 3"),
        ("a/t*b", "a / t × b"),
        ("a/(t*b)", "a / (t b)"),
        ("a*(b/c)", "a × (b / c)"),
        ("usable*(1 - reserve)", "usable × (1 - reserve)"),
        ("min(m, p - 1)*-x", "min(m, p - 1) × -x"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a + b)*(c + d)", "(a + b) × (c + d)"),
        ("h**2", "h**2"),
        ("2**(a*b)", "2**(a b)"),
        ("(a**b)**c", "(a**b)**c"),
        ("a**b**c", "a**b**c"),
    ],
)
def test_a_formula_is_written_as_its_field_writes_it(formula, printed):
    assert render(parse_expression(formula)) == printed


NAMES = some.sampled_from(["s", "b", "h", "total"])
NUMBERS = some.one_of(
    some.integers(-(10**20), 10**20),
    some.floats(-1e20, 1e20, allow_subnormal=False),
    some.fractions(-100, 100, max_denominator=99),
)
TREES = some.recursive(
    NAMES | some.integers(0, 10**9).map(str) | some.floats(0, 1e9).map(repr),
    lambda inner: some.one_of(
        some.tuples(inner, some.sampled_from("+-*/%"), inner).map(
            lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
        ),
        some.tuples(inner, some.integers(-3, 3)).map(lambda p: f"({p[0]}) ** ({p[1]})"),
        inner.map(lambda text: f"-({text})"),
        some.tuples(inner, inner).map(lambda pair: "max({}, {})".format(*pair)),
        inner.map(lambda text: f"ceil({text})"),
    ),
    max_leaves=12,
)


@given(TREES, some.fixed_dictionaries(dict.fromkeys(["s", "b", "h", "total"], NUMBERS)))
def test_what_is_printed_with_numbers_has_the_value_to_the_last_bit(text, names):
    tree = parse_expression(text)
    try:
        value = evaluate(tree, names)
    except ExpressionError:
        return
    assert evaluate(render(tree, names)) == value
