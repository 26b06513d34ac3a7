"""Any lines that hold whole statements get an anchor that resolves to just them."""

from __future__ import annotations

import ast
import random
import textwrap

import pytest

from readerkit.anchors import SourceFile, Span, resolve
from readerkit.anchors.propose import propose
from readerkit.errors import AnchorError

SOURCE = textwrap.dedent(
    '''\
    """A module."""

    import os


    class Linear:
        """A layer."""

        def forward(self, x):
            """Multiply."""
            # first
            y = self.impl(
                x,
                self.weight,
            )
            if self.parallel:
                y = scatter(y)
            else:
                y = reduce(y)
            y = reduce(y)
            return y


    def step(model):
        loss = model()
        loss.backward()
        return loss
    '''
)
FILE = SourceFile("a.py", SOURCE.encode())


PROPOSED = {
    "definition": (9, 21, {"symbol": "Linear.forward"}),
    "definition with blank lines around": (22, 27, {"symbol": "step"}),
    "call": (12, 15, {"symbol": "Linear.forward", "code": "self.impl(...)"}),
    "whole if": (16, 19, {"symbol": "Linear.forward", "code": "if self.parallel: ..."}),
    "header": (16, 16, {"symbol": "Linear.forward", "code": "if self.parallel:"}),
    "at module level": (3, 3, {"code": "import os"}),
    "class header": (6, 6, {"symbol": "Linear", "code": "class Linear:"}),
}


@pytest.mark.parametrize(
    ("first", "last", "keys"), PROPOSED.values(), ids=PROPOSED.keys()
)
def test_proposal_is_short_and_readable(
    first: int, last: int, keys: dict[str, str]
) -> None:
    anchor = propose(Span("a.py", first, last), FILE)
    assert anchor.to_yaml() == {"file": "a.py", **keys}


def test_several_statements_become_a_range() -> None:
    anchor = propose(Span("a.py", 25, 26), FILE)
    assert anchor.start and anchor.stop
    assert str(resolve(anchor, FILE)) == "a.py:25-26"


def test_equal_statements_are_told_apart() -> None:
    anchor = propose(Span("a.py", 20, 20), FILE)
    assert str(resolve(anchor, FILE)) == "a.py:20-20"


REFUSED = {
    "beyond the file": (5, 400, "expected lines within"),
    "last before first": (5, 4, "expected lines within"),
    "line zero": (0, 3, "expected lines within"),
    "a comment": (11, 11, "holds no code"),
    "blank lines": (4, 5, "holds no code"),
}


@pytest.mark.parametrize(("first", "last", "message"), REFUSED.values(), ids=REFUSED)
def test_lines_that_name_no_code_are_refused(
    first: int, last: int, message: str
) -> None:
    with pytest.raises(AnchorError) as caught:
        propose(Span("a.py", first, last), FILE)
    assert message in str(caught.value)


def test_lines_that_cut_a_statement_say_which_would_do() -> None:
    with pytest.raises(AnchorError) as caught:
        propose(Span("a.py", 13, 15), FILE)
    assert "a.py:12-15" in str(caught.value)


@pytest.mark.parametrize("seed", range(60))
def test_any_statement_of_a_random_module_can_be_named(seed: int) -> None:
    choose = random.Random(seed)
    source = _random_source(choose)
    file = SourceFile("a.py", source.encode())
    statements = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt)
        and not isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    node = choose.choice(statements)
    span = Span("a.py", node.lineno, node.end_lineno or 0)
    assert resolve(propose(span, file), file) == span


def _random_source(choose: random.Random) -> str:
    names = ["alpha", "beta", "gamma", "delta"]

    def statement(indent: str, depth: int) -> list[str]:
        a, b = choose.choice(names), choose.choice(names)
        kind = choose.randrange(6 if depth < 3 else 4)
        if kind == 0:
            return [f"{indent}{a} = {b} + {choose.randrange(9)}"]
        if kind == 1:
            return [
                f"{indent}{a}.{b}(",
                f"{indent}    {choose.randrange(9)},",
                f"{indent})",
            ]
        if kind == 2:
            return [f"{indent}assert {a}, 'no {b}'"]
        if kind == 3:
            return [f"{indent}{a}[{b}] = dict({a}={b})"]
        head = f"if {a}.{b}:" if kind == 4 else f"for {a} in {b}:"
        return [f"{indent}{head}", *body(indent + "    ", depth + 1)]

    def body(indent: str, depth: int) -> list[str]:
        return [
            line
            for _ in range(choose.randint(1, 3))
            for line in statement(indent, depth)
        ]

    lines = []
    for number in range(3):
        lines += [f"def function_{number}(value):", *body("    ", 0), ""]
    return "\n".join(lines)
