"""Definitions have the names and lines that Python's own parser gives them."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from readerkit.anchors import Anchor, SourceFile, resolve
from readerkit.errors import AnchorError


def by_python(source: str) -> list[tuple[str, int, int]]:
    """Return every definition as Python's own parser sees it."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield prefix + child.name, child.lineno, child.end_lineno or 0
                yield from walk(child, f"{prefix}{child.name}.")
            else:
                yield from walk(child, prefix)

    return sorted(walk(ast.parse(source), ""))


def by_us(source: str | bytes) -> list[tuple[str, int, int]]:
    """Return every definition as anchors see it."""
    data = source if isinstance(source, bytes) else source.encode()
    table = SourceFile("a.py", data).symbols
    return sorted((s.name, s.first, s.last) for found in table.values() for s in found)


CASES = {
    "nested": "class A:\n    class B:\n        def f(self):\n            def g():\n"
    "                pass\n            return g\n",
    "decorated": "@first\n@second(1)\nclass A:\n    @property\n    def x(self):\n"
    "        return 1\n\n    @x.setter\n    def x(self, value):\n        pass\n",
    "under if and else": "if a:\n    def f():\n        pass\nelif b:\n    def f():\n"
    "        return 1\nelse:\n    class f:\n        pass\n",
    "under try": "try:\n    import x\nexcept ImportError:\n    def f():\n        pass\n"
    "else:\n    def f():\n        return 2\nfinally:\n    def g():\n        pass\n",
    "under loops and with": "for i in a:\n    def f():\n        pass\nwhile b:\n"
    "    def g():\n        pass\nwith c as d:\n    def h():\n        pass\n",
    "under match": "match a:\n    case 1:\n        def f():\n            pass\n"
    "    case _:\n        def g():\n            pass\n",
    "async": "class A:\n    async def f(self):\n        async with a:\n"
    "            async def g():\n                pass\n",
    "one line": "def f(): pass\nclass A: x = 1\n",
    "comments at the end": "def f():\n    x = 1\n    # about x\n    # more\n\n\n"
    "class A:\n    def g(self):\n        if x:\n            y = 2\n            # y\n"
    "        # g\n    # A\n",
    "words in strings": 'text = "def f(): pass"\n"""\nclass A:\n    def g(): ...\n"""\n'
    "defer = class_ = 1\ndef real():\n    '''def no(): pass'''\n",
    "signature over lines": "def f(\n    a,\n    b=lambda: 1,\n) -> None:\n    pass\n",
    "tabs": "class A:\n\tdef f(self):\n\t\tpass\n",
    "deep body before a nested one": "def f():\n    if a:\n        for b in c:\n"
    "            x = 1\n    with d:\n        class G:\n            pass\n"
    "    return 2\n",
}


@pytest.mark.parametrize("source", CASES.values(), ids=CASES)
def test_definitions_are_those_of_pythons_parser(source: str) -> None:
    assert by_us(source) == by_python(source)


def test_line_ends_and_a_byte_order_mark_move_no_line() -> None:
    source = CASES["nested"]
    assert by_us(source.replace("\n", "\r\n").encode()) == by_python(source)
    assert by_us(b"\xef\xbb\xbf" + source.encode()) == by_python(source)


def test_bytes_that_are_not_utf8_are_read_past() -> None:
    assert by_us(b'x = "\xff\xfe"\ndef f():\n    pass\n') == [("f", 2, 3)]


def test_broken_source_still_gives_the_definitions_around_it() -> None:
    assert ("g", 4, 5) in by_us("def f(:\n    pass\n\ndef g():\n    pass\n")


def random_module(choose: random.Random, depth: int = 0) -> list[str]:
    """Return the lines of a module of nested definitions and statements."""
    lines: list[str] = []
    for _ in range(choose.randint(1, 4)):
        kind = choose.choice(["def", "class", "if", "assign", "try", "decorated"])
        name = f"n{choose.randint(0, 5)}"
        body = random_module(choose, depth + 1) if depth < 4 else ["pass"]
        inner = [f"    {line}" for line in body]
        if kind == "assign":
            lines += [f"{name} = call(", "    1,", ")"]
        elif kind == "if":
            lines += [f"if {name}:", *inner, "else:", "    pass", "    # last"]
        elif kind == "try":
            lines += ["try:", *inner, f"except {name.upper()}:", "    pass"]
        elif kind == "decorated":
            lines += ["@wrap(1)", f"def {name}():", *inner]
        else:
            lines += [
                f"{kind} {name}:" if kind == "class" else f"def {name}():",
                *inner,
            ]
    return lines


@settings(max_examples=40)
@given(seed=some.integers(min_value=0))
def test_random_modules_agree_with_pythons_parser(seed: int) -> None:
    source = "\n".join(random_module(random.Random(seed))) + "\n"
    assert by_us(source) == by_python(source)


def test_redefined_symbol_needs_nth() -> None:
    source = SourceFile("a.py", CASES["under if and else"].encode())
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor("a.py", symbol="f"), source)
    assert caught.value.candidates == (
        "nth: 1 is line 2: def f():",
        "nth: 2 is line 5: def f():",
        "nth: 3 is line 8: class f:",
    )
    assert resolve(Anchor("a.py", symbol="f", nth=2), source).first == 5


def test_misspelt_symbol_names_the_nearest_ones() -> None:
    source = SourceFile("a.py", b"class Linear:\n    def forward(self): pass\n")
    with pytest.raises(AnchorError, match=r"no symbol 'Linear\.foward'") as caught:
        resolve(Anchor("a.py", symbol="Linear.foward"), source)
    assert caught.value.candidates[0] == "did you mean Linear.forward? (line 2)"
