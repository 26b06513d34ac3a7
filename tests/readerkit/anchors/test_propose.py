"""Any lines that hold whole statements get an anchor that resolves to just them."""

from __future__ import annotations

import ast
import contextlib
import random
import re
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from readerkit.anchors import Anchor, SourceFile, Span, fingerprint, resolve
from readerkit.anchors.highlight import highlight
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
    assert str(resolve(anchor, FILE)) == "a.py:20"


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


RICH = textwrap.dedent(
    '''\
    import a


    class A:
        @property
        @b(1)
        def x(self):
            return f(
                1,
                k=self.k,
                j=self.j,
            )

        @x.setter
        def x(self, v):
            self.v = v
            f()

        async def y(self):
            """Doc."""
            async with a as b:
                await c
            match self:
                case 1:
                    pass
                case [a, *b] if c:
                    d()
            return {
                "a": 1,
                "b": self.b,
                **c,
            }


    from a_very_long_module_name_indeed import (
        one_name_that_is_long_enough_to_count,
        another_name_that_is_long_enough_to_count,
        a_third_name_that_is_long_enough_to_count,
        a_fourth_name_that_is_long_enough_to_count,
    )
    '''
)
RICH_PROPOSED = {
    "decorated": (5, 12, {"code": "@property\n@...\ndef x(...): ..."}),
    "decorators and header": (5, 7, {"code": "@property\n@...\ndef x(...):"}),
    "decorators": (5, 6, {"from": "@property", "to": "b(1)"}),
    "the second of a name": (15, 17, {"nth": 2}),
    "the second of a name, decorated": (14, 17, {"code": "@x.setter\ndef x(...): ..."}),
    "argument": (10, 10, {"code": "k=self.k"}),
    "arguments": (10, 11, {"from": "k=self.k", "to": "j=self.j"}),
    "short call": (17, 17, {"code": "f()"}),
    "docstring": (20, 20, {"code": '"""Doc."""'}),
    "async header": (21, 21, {"code": "async with ...:"}),
    "match": (23, 27, {"code": "match self: ..."}),
    "match header": (23, 23, {"code": "match self:"}),
    "case": (26, 27, {"code": "case [...] if c: ..."}),
    "entry": (30, 30, {"code": '"b": self.b'}),
    "splat": (31, 31, {"code": "**c"}),
    "long import": (35, 40, {"code": "from a_very_long_module_name_indeed import ..."}),
}


@pytest.mark.parametrize(
    ("first", "last", "keys"), RICH_PROPOSED.values(), ids=RICH_PROPOSED
)
def test_proposal_fits_what_is_named(
    first: int, last: int, keys: dict[str, str]
) -> None:
    file = SourceFile("a.py", RICH.encode())
    proposed = propose(Span("a.py", first, last), file).to_yaml()
    proposed.pop("file")
    symbol = proposed.pop("symbol", "")
    assert proposed == keys
    assert symbol == ("A.x" if first < 18 else "A.y" if first < 34 else "")


CUT = {
    "an argument that is a literal": (9, 9, "a.py:8-12"),
    "the end of a call": (12, 12, "a.py:8-12"),
    "into the next definition": (11, 15, "a.py:8-17"),
}


@pytest.mark.parametrize(("first", "last", "whole"), CUT.values(), ids=CUT)
def test_cut_names_the_smallest_lines_that_would_do(
    first: int, last: int, whole: str
) -> None:
    with pytest.raises(AnchorError) as caught:
        propose(Span("a.py", first, last), SourceFile("a.py", RICH.encode()))
    assert whole in str(caught.value)


@settings(max_examples=60)
@given(seed=some.integers(min_value=0))
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


# --- richer modules ---


def rich_source(choose: random.Random) -> str:
    """Return a module with every kind of statement, some of them twice."""
    names = ["alpha", "beta", "gamma", "delta", "epsilon"]

    def name() -> str:
        return choose.choice(names) + choose.choice(["", "", "_two", ".part"])

    def call() -> str:
        arguments = [name(), f"key={name()}", f"*{name()}", "'text ...'"]
        chosen = choose.sample(arguments, choose.randint(0, 3))
        return f"{name()}({', '.join(sorted(chosen, key=lambda a: '=' in a))})"

    def simple() -> list[str]:
        return choose.choice(
            [
                [f"{name()} = {call()}"],
                [f"{choose.choice(names)}: int = {choose.randrange(99)}"],
                [f"{name()} += {name()} or {call()} or {name()}"],
                [f"{choose.choice(names)}, (_, *rest) = {call()}"],
                [f"assert {name()} is not None, f'no {{{name()}}} ...'"],
                [f"raise {name()}({name()}) from {name()}"],
                [f"del {name()}, {name()}"],
                [f"import {choose.choice(names)}, os.path as path"],
                [f"from ..{choose.choice(names)} import (", "    one,  # first", ")"],
                [f"{call()}  # a comment"],
                [f"{name()}(", f"    {call()},", "", f"    key={call()},", ")"],
                ["table = {", f"    'a': {call()},", f"    **{name()},", "}"],
                [f"value = [{name()} for each in {call()} if {name()}]"],
                [f"value = {name()}[{name()}:, ..., {choose.randrange(9)}]"],
                [f"value = lambda first, *rest: {call()}"],
                ["text = \\", "    'a' \\", "    'b'"],
                ["pass"],
                ["return (", f"    {call()}", f"    + {call()}", ")"],
                [f"yield {name()}, {call()}"],
                [f"await {call()}"],
            ]
        )

    def compound(depth: int) -> list[str]:
        def inner() -> list[str]:
            return ["    " + line for line in body(depth + 1)]

        number = choose.randrange(10**6)
        kind = choose.randrange(9)
        if kind == 0:
            clauses = [f"elif {name()}:", *inner(), "else:", *inner()]
            return [f"if {call()}:", *inner(), *clauses]
        if kind == 1:
            return [f"for {choose.choice(names)} in {call()}:", *inner()]
        if kind == 2:
            return [f"while not {call()}:", *inner(), "else:", *inner()]
        if kind == 3:
            return [f"with {call()} as {choose.choice(names)}, {call()}:", *inner()]
        if kind == 4:
            clauses = [f"except {name()} as error:", *inner(), "finally:", *inner()]
            return ["try:", *inner(), *clauses]
        if kind == 5:
            head = f"async def f{number}(self, *, key: int = 3) -> int:"
            return [f"@{call()}", head, *inner()]
        if kind == 6:
            return [f"class C{number}(Base, metaclass=Meta):", *inner()]
        if kind == 7:
            head = [f"def f{number}(", "    first,", "    key=None,", "):"]
            return [f"@{choose.choice(names)}", "@final", *head, *inner()]
        return [f"match {call()}:", "    case [1, *_] if x:"] + (
            ["    " + line for line in inner()] + ["    case _:", "        pass"]
        )

    def body(depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(choose.randint(1, 4)):
            is_simple = depth > 3 or choose.random() < 0.6
            lines += simple() if is_simple else compound(depth)
            lines += choose.choice([[], [], ["# a comment"], [""]])
        return lines

    return "\n".join([*compound(0), *compound(0), *body(0), "last()", ""])


def siblings(tree: ast.AST) -> list[list[ast.stmt]]:
    """Return every list of statements."""
    bodies = [
        getattr(node, field, None)
        for node in ast.walk(tree)
        for field in ("body", "orelse", "finalbody")
    ]
    return [body for body in bodies if isinstance(body, list) and body]


def line_of(node: ast.stmt) -> int:
    """Return a statement's first line, decorators included."""
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


@settings(max_examples=60)
@given(seed=some.integers(min_value=0))
def test_any_lines_of_whole_statements_can_be_named(seed: int) -> None:
    choose = random.Random(seed)
    source = rich_source(choose)
    file = SourceFile("a.py", source.encode())
    assert not file.root.has_error
    for body in choose.sample(all_ := siblings(ast.parse(source)), min(4, len(all_))):
        first = choose.randrange(len(body))
        last = min(len(body) - 1, first + choose.choice([0, 0, 1, 2]))
        start = choose.choice([line_of(body[first]), body[first].lineno])
        span = Span("a.py", start, body[last].end_lineno or 0)
        anchor = propose(span, file)
        assert resolve(anchor, file) == span
        # The anchor holds nothing but the code: it survives lines above and its YAML.
        again = Anchor.parse(anchor.to_yaml())
        moved = SourceFile("a.py", b"# moved\n\n" + source.encode())
        assert resolve(again, moved) == Span("a.py", span.first + 2, span.last + 2)


NO_CODE = {
    "an empty file": (b"", 1, "a.py is empty: got no lines to name"),
    "a header that does not parse": (
        b"def f(:\n  return\n",
        1,
        "a.py:1: got code that",
    ),
    "below a break": (b"x = (\n\ndef g(a):\n    a = = 1\n", 4, "that does not parse"),
}


@pytest.mark.parametrize(("data", "line", "why"), NO_CODE.values(), ids=NO_CODE)
def test_lines_that_are_no_code_are_refused_for_what_they_are(data, line, why):
    with pytest.raises(AnchorError, match=why):
        propose(Span("a.py", line, line), SourceFile("a.py", data))


# --- source that does not parse, and source that nobody wrote ---

PATTERNS = [
    "f(...)",
    "x = ...",
    "def f(...): ...",
    "@...\ndef f(...):",
    "if ...:",
    "case ...: ...",
    "a or ...",
    "key=...",
    "{..., a: ...}",
    "match ...: ...",
    "try: ...",
    "from a import ...",
]
PIECES = ["(", ")", "\n", "def", "class", ":", "'", '"""', "\\", "\t", "\xff"]
PIECES += ["@", "async", "match", "case", "lambda", "f'{", "}", "  "]


def broken(choose: random.Random) -> bytes:
    """Return a sound module with some tokens lost, swapped or added."""
    tokens = re.findall(r"\s+|\w+|.", choose.choice([RICH, rich_source(choose)]), re.S)
    for _ in range(choose.randint(1, 12)):
        at, other = choose.randrange(len(tokens)), choose.randrange(len(tokens))
        tokens[at] = choose.choice(["", tokens[other], choose.choice(PIECES)])
    return "".join(tokens).encode("latin-1", "replace")


@pytest.mark.further
@settings(max_examples=60)
@given(seed=some.integers(min_value=0))
def test_broken_source_ends_in_lines_or_an_error(seed: int) -> None:
    choose = random.Random(seed)
    file = SourceFile("a.py", broken(choose))
    count = len(file.raw_lines)
    assert all(1 <= mark.line <= count for mark in highlight(file, 1, count))
    for pattern in PATTERNS:
        with contextlib.suppress(AnchorError):
            assert resolve(Anchor("a.py", code=pattern), file).last <= count
    for _ in range(4):
        first = choose.randint(1, count)
        span = Span("a.py", first, min(count, first + choose.choice([0, 1, 5])))
        assert len(fingerprint(span, file).lines) == span.last - span.first + 1
        with contextlib.suppress(AnchorError):
            named = resolve(propose(span, file), file)
            assert span.first <= named.first <= named.last <= span.last
