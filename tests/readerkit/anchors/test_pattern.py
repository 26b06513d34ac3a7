"""What a pattern writes must be there; what it does not write must not."""

from __future__ import annotations

import ast
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from readerkit.anchors import SourceFile
from readerkit.anchors.pattern import Pattern
from readerkit.errors import AnchorError


def find(pattern: str, source: str) -> list[tuple[int, int]]:
    """Return the lines of every match."""
    file = SourceFile("a.py", source.encode())
    return [(m.first, m.last) for m in Pattern(pattern).find([file.root], file.data)]


IF = "if a:\n    b()\nelif c:\n    d()\nelse:\n    e()\n"
TRY = (
    "try:\n    a()\nexcept E:\n    b()\nexcept (F, G) as e:\n    c()\nelse:\n    d()\n"
)
TRY += "finally:\n    f()\n"
MATCH = "match x, y:\n    case [1, 2, 3] if z:\n        a()\n    case P(q, r=1):\n"
MATCH += "        b()\n    case {'k': v, **w} | None:\n        c()\n"
MATCH += "    case _:\n        d()\n"
DEF = "@a\n@b(1)\nasync def f(x: int, *y: str, z=1, w: T = 2, **k) -> int:\n    pass\n"
WITH = (
    "async with a as b, c():\n    pass\nwith (\n    d() as e,\n    f,\n):\n    pass\n"
)

# pattern, source, the lines of the one match
FOUND = {
    # --- headers stand for the lines up to the colon ---
    "if": ("if a:", IF, (1, 1)),
    "elif": ("elif c:", IF, (3, 3)),
    "else of if": ("else:", IF, (5, 5)),
    "else of for": ("else:", "for a in b:\n    c\nelse:\n    d\n", (3, 3)),
    "else of while": ("else:", "while a:\n    c\nelse:\n    d\n", (3, 3)),
    "else of try": ("else:", TRY, (7, 7)),
    "for": ("for a, b in c:", "for a, b in c:\n    d\n", (1, 1)),
    "async for": ("async for a in b:", "async for a in b:\n    c\n", (1, 1)),
    "while": ("while a < b:", "while a < b:\n    c\n", (1, 1)),
    "with": ("with d() as e, f:", WITH, (3, 6)),
    "async with": ("async with a as b, c():", WITH, (1, 1)),
    "try": ("try:", TRY, (1, 1)),
    "except": ("except E:", TRY, (3, 3)),
    "except as": ("except (F, G) as e:", TRY, (5, 5)),
    "bare except": ("except:", "try:\n    a\nexcept:\n    b\n", (3, 3)),
    "except group": ("except* E:", "try:\n    a\nexcept* E:\n    b\n", (3, 3)),
    "finally": ("finally:", TRY, (9, 9)),
    "class": ("class A(B, metaclass=C):", "class A(B, metaclass=C):\n    d\n", (1, 1)),
    "def": ("def f(a, *, b):", "def f(a, *, b):\n    c\n", (1, 1)),
    "async def": ("async def f(...):", DEF, (3, 3)),
    "match": ("match x, y:", MATCH, (1, 1)),
    "case": ("case P(q, r=1):", MATCH, (4, 4)),
    "case with a guard": ("case [1, 2, 3] if z:", MATCH, (2, 2)),
    "case of anything": ("case _:", MATCH, (8, 8)),
    "header over lines": ("def f(a, b):", "def f(\n  a,\n  b,\n):\n  c\n", (1, 4)),
    "header with a comment": ("if a:  # why", "if a:  # because\n    b\n", (1, 1)),
    "lambda": ("lambda a:", "f(\n    lambda a: b\n)\n", (2, 2)),
    # --- whole statements; a gap as body takes the clauses behind it along ---
    "whole if": ("if a: ...", IF, (1, 6)),
    "whole elif": ("elif c: ...", IF, (3, 4)),
    "whole else": ("else: ...", IF, (5, 6)),
    "if with its else": ("if a:\n    b\nelse: ...", "if a:\n  b\nelse:\n  c\n", (1, 4)),
    "if with its body": ("if a:\n    b()", "if a: b()\n", (1, 1)),
    "whole for with else": ("for a in b: ...", "for a in b: c\nelse: d\n", (1, 2)),
    "whole while": ("while a: ...", "while a:\n    b\n", (1, 2)),
    "whole with": ("with d() as e, f: ...", WITH, (3, 7)),
    "whole try": ("try: ...", TRY, (1, 10)),
    "whole except": ("except E: ...", TRY, (3, 4)),
    "whole finally": ("finally: ...", TRY, (9, 10)),
    "whole class": ("class A: ...", "class A:\n    b = 1\n    c = 2\n", (1, 3)),
    "whole def": ("async def f(...): ...", DEF, (3, 4)),
    "whole match": ("match x, y: ...", MATCH, (1, 9)),
    "whole case": ("case P(...): ...", MATCH, (4, 5)),
    "gaps among statements": (
        "for a in b:\n    ...\n    c()\n    ...",
        "for a in b:\n    d()\n    c()\n    e()\n    f()\n",
        (1, 5),
    ),
    "statement at the end of a body": (
        "for a in b:\n    ...\n    c()", "for a in b:\n  d()\n  e()\n  c()\n", (1, 4),
    ),
    "body of several statements": ("if a:\n  b\n  c", "if a:\n    b\n    c\n", (1, 3)),
    # --- decorators ---
    "a decorator alone": ("@b(...)", DEF, (2, 2)),
    "a decorator's name": ("@a", DEF, (1, 1)),
    "decorators and header": ("@a\n@b(1)\nasync def f(...):", DEF, (1, 3)),
    "any decorators": ("@...\nasync def f(...):", DEF, (1, 3)),
    "some decorators": ("@a\n@...\nasync def f(...): ...", DEF, (1, 4)),
    "decorated class": ("@d\nclass A: ...", "@d\nclass A:\n    b\n", (1, 3)),
    # --- gaps in lists ---
    "all arguments": ("f(...)", "f(a, *b, c=1, **d)", (1, 1)),
    "no argument": ("f(...)", "f()", (1, 1)),
    "a generator as argument": ("f(...)", "f(a for a in b)", (1, 1)),
    "gap at the start": ("f(..., b)", "f(a, c, b)", (1, 1)),
    "empty gap at the start": ("f(..., b)", "f(b)", (1, 1)),
    "gap at the end": ("f(b, ...)", "f(b, a=1)", (1, 1)),
    "empty gap at the end": ("f(b, ...)", "f(b)", (1, 1)),
    "gap in the middle": ("f(a, ..., b)", "f(a, c, d, b)", (1, 1)),
    "empty gap in the middle": ("f(a, ..., b)", "f(a, b)", (1, 1)),
    "two gaps": ("f(..., b, ...)", "f(a, b, b, c)", (1, 1)),
    "gap that must try again": ("f(..., a, b)", "f(a, c, a, b)", (1, 1)),
    "keyword among others": ("f(..., k=1, ...)", "f(a, k=1, j=2)", (1, 1)),
    "any value of a keyword": ("f(a, k=...)", "f(a, k=b + c)", (1, 1)),
    "splats": ("f(*..., **...)", "f(*a, **b)", (1, 1)),
    "several calls": ("f(...).g(...)", "f(a).g(b)", (1, 1)),
    "call of a call": ("f(...)(...)", "f(a)(b)", (1, 1)),
    "method of anything": ("... .g(...)", "f(a)[0].g(b)", (1, 1)),
    "list": ("[a, ...]", "[a, b, c]", (1, 1)),
    "end of a list": ("[..., c]", "[a, b, c]", (1, 1)),
    "tuple": ("(a, ..., c)", "(a, b, c)", (1, 1)),
    "bare tuple": ("return a, ...", "return a, b, c", (1, 1)),
    "set": ("{a, ...}", "{a, b}", (1, 1)),
    "dictionary": ("{'a': ..., ...}", "{'a': 1, **b}", (1, 1)),
    "entry among others": ("{..., 'b': 2, ...}", "{'a': 1, 'b': 2, 'c': 3}", (1, 1)),
    "dictionary in a call": ("f([...], {..., a: b})", "f([1], {c: d, a: b})", (1, 1)),
    "subscript": ("a[..., 0]", "a[1, 2, 0]", (1, 1)),
    "any subscript": ("a[...]", "a[1:2, 3]", (1, 1)),
    "slice": ("a[1:...]", "a[1:2]", (1, 1)),
    "open end of a slice": ("a[1:...]", "a[1:]", (1, 1)),
    "targets": ("a, ..., c = x", "a, b, c = x", (1, 1)),
    "loop targets": ("for a, ... in b:", "for a, c, d in b:\n    e\n", (1, 1)),
    "parameters": ("def f(a, ..., d):", "def f(a, b, *, c, d):\n    e\n", (1, 1)),
    "no parameters": ("def f(...):", "def f():\n    a\n", (1, 1)),
    "lambda parameters": ("f(lambda ...: a)", "f(lambda b, c: a)", (1, 1)),
    "lambda without parameters": ("f(lambda ...: a)", "f(lambda: a)", (1, 1)),
    "bases": ("class A(..., B):", "class A(C, D, B):\n    e\n", (1, 1)),
    "context managers": ("with d() as e, ...:", WITH, (3, 6)),
    "imports": ("import a, ...", "import a, b.c", (1, 1)),
    "imported names": ("from a import ..., c", "from a import b, c", (1, 1)),
    "imports of the future": (
        "from __future__ import ...", "from __future__ import annotations", (1, 1),
    ),
    "deleted names": ("del a, ...", "del a, b", (1, 1)),
    "global names": ("global a, ...", "global a, b", (1, 1)),
    "nonlocal names": ("nonlocal ..., b", "nonlocal a, b", (1, 1)),
    "assertion with a text": ("assert a, ...", "assert a, f'{b}'", (1, 1)),
    "assertion without": ("assert a, ...", "assert a", (1, 1)),
    "type parameters": ("def f[A, ...](a):", "def f[A, B](a):\n    c\n", (1, 1)),
    "case of a list": ("case [1, ...]:", MATCH.replace(" if z", ""), (2, 2)),
    "case of a class": ("case P(q, ...):", MATCH, (4, 4)),
    "case of a mapping": ("case {'k': v, ...} | ...:", MATCH, (6, 6)),
    "matched values": ("match x, ...:", MATCH, (1, 1)),
    "chain of or": ("if a or ...:", "if a or b or c:\n    d\n", (1, 1)),
    "chain of and": ("x = a and ... and d", "x = a and b and c and d", (1, 1)),
    "end of a chain": ("x = ... and d", "x = a and b and d", (1, 1)),
    "chain of sums": ("x = a + ...", "x = a + b - c * d", (1, 1)),
    "chain of products": ("x = a * ...", "x = a * b / c // d", (1, 1)),
    "chain in parentheses": ("x = (a or ...)", "x = (\n  a\n  or (b and c)\n)", (1, 4)),
    "comparison": ("if a < ...:", "if a < b < c:\n    d\n", (1, 1)),
    # --- gaps for one node ---
    "value": ("x = ...", "x = a if b else c", (1, 1)),
    "target": ("... = a()", "x.y[0] = a()", (1, 1)),
    "augmented": ("x += ...", "x += a", (1, 1)),
    "operand": ("a @ ...", "a @ b.T", (1, 1)),
    "condition": ("a if ... else b", "a if c(d) else b", (1, 1)),
    "unary": ("not ...", "not a.b", (1, 1)),
    "attribute": ("a.b.c", "a.b.c", (1, 1)),
    "exception": ("raise E(...) from ...", "raise E('a') from e", (1, 1)),
    "handler": ("except (F, ...) as ...:", TRY, (5, 5)),
    "annotation": ("x: ... = 1", "x: dict[str, int] = 1", (1, 1)),
    "result": ("def f(...) -> ...:", "def f(a) -> T[U]:\n    b\n", (1, 1)),
    "await": ("await f(...)", "await f(a)", (1, 1)),
    "yield": ("yield ...", "yield a, b", (1, 1)),
    "walrus": ("if (n := f(...)):", "if (n := f(a)):\n    b\n", (1, 1)),
    "comprehension": ("[f(...) for a in ...]", "[f(a) for a in b(c)]", (1, 1)),
    "type alias": ("type T = ...", "type T = list[int]", (1, 1)),
    # --- brackets that hold anything ---
    "parentheses of a group": ("x = (...)", "x = (a + b)", (1, 1)),
    "parentheses of a tuple": ("x = (...)", "x = (a, b)", (1, 1)),
    "parentheses of a generator": ("x = (...)", "x = (a for a in b)", (1, 1)),
    "brackets of a comprehension": ("x = [...]", "x = [a for a in b]", (1, 1)),
    "braces of a dictionary": ("x = {...}", "x = {a: b}", (1, 1)),
    "braces of a set": ("x = {...}", "x = {a, b}", (1, 1)),
    "braces with nothing": ("x = {...}", "x = {}", (1, 1)),
    # --- layout does not count ---
    "white space": ("f( a,b )", "f(a, b)", (1, 1)),
    "line breaks": ("f(a, b)", "f(\n    a,\n    b,\n)", (1, 4)),
    "comments inside": ("f(a, b)", "f(  # c\n    a,  # d\n    # e\n    b\n)", (1, 5)),
    "comments in a pattern": ("f(  # why\n    a\n)", "f(a)", (1, 1)),
    "joined lines": ("x = a + b", "x = a \\\n    + b", (1, 2)),
    "a comma at the end": ("f(a, b,)", "f(a, b)", (1, 1)),
    "carriage returns": ("f(a, b)", "f(\r\n    a,\r\n    b\r\n)\r\n", (1, 4)),
    "carriage returns in a pattern": ("f(\r\n    a\r\n)", "f(a)", (1, 1)),
    "tabs": ("if a:\n\tb", "if a:\n\tb\n", (1, 2)),
    "spaces in an operator": ("a not in b", "a not  in b", (1, 1)),
    "semicolons": ("b()", "a(); b(); c()", (1, 1)),
    # --- what two people write differently ---
    "grouped value": ("x = a + b", "x = (\n    a\n    + b\n)", (1, 4)),
    "grouped pattern": ("x = (a + b)", "x = a + b", (1, 1)),
    "grouped condition": ("if a and b:", "if (a and b):\n    c\n", (1, 1)),
    "grouped operand": ("a + b * c", "a + (b * c)", (1, 1)),
    "grouped imports": ("from a import b, c", "from a import (\n  b,\n  c,\n)", (1, 4)),
    "other quotes": ("f('a')", 'f("a")', (1, 1)),
    "triple quotes": ("x = 'a'", 'x = """a"""', (1, 1)),
    "case of a prefix": ("x = B'a'", "x = b'a'", (1, 1)),
    "annotated variable": ("x = 3", "x: int = 3", (1, 1)),
    "annotated attribute": ("self.x = ...", "self.x: int = 3", (1, 1)),
    "annotated parameters": (
        "def f(x, *y, z=1, w=..., **k):", DEF.replace("async ", ""), (3, 3),
    ),
    "annotated result": ("def f():", "def f() -> int:\n    a\n", (1, 1)),
    "generic function": ("def f(a):", "def f[T](a: T) -> T:\n    b\n", (1, 1)),
    "generic class": ("class A(B): ...", "class A[T](B):\n    c\n", (1, 2)),
    "some annotations": ("def f(a: int, b):", "def f(a: int, b: T):\n    c\n", (1, 1)),
    # --- strings keep their dots ---
    "dots in a string": ("f('a...b')", "f('a...b')", (1, 1)),
    "dots in a raw string": ("f(r'a\\...')", "f(r'a\\...')", (1, 1)),
    "dots in a docstring": ('"""A...\nb."""', 'def f():\n    """A...\nb."""\n', (2, 3)),
    "dots in an f-string": ("f'a...{b}'", "f'a...{b}'", (1, 1)),
    "dots behind a quoted quote": ("f('it\\'s', ...)", "f('it\\'s', a)", (1, 1)),
    "dots behind a hash in a string": ("f('#', ...)", "f('#', a)", (1, 1)),
    "f-string": ("f'{a!r:>{b}}'", 'f"{ a !r:>{b}}"', (1, 1)),
    "bytes": ("x = b'a'", "x = b'a'", (1, 1)),
    "joined strings": ("f('a' 'b')", "f(\n    'a'\n    'b'\n)", (1, 4)),
    "escapes": ("f('a\\n')", "f('a\\n')", (1, 1)),
    # --- dots of imports ---
    "relative import": ("from ..a import b", "from ..a import b", (1, 1)),
    "three dots up": ("from ...a import b", "from ...a import b", (1, 1)),
    "any module": ("from ... import b", "from a.b import b", (1, 1)),
    # --- pieces of lists, where no statement is meant ---
    "keyword argument": ("k=self.k", "f(\n    a,\n    k=self.k,\n)", (3, 3)),
    "keyword with its comma": ("group=...,", "f(\n    group=self.group,\n)", (2, 2)),
    "keyword splat": ("**more", "f(\n    **more,\n)", (2, 2)),
    "splat": ("*more", "f(\n    *more,\n)", (2, 2)),
    "entry": ("'k': ...", "x = {\n    'k': v,\n}", (2, 2)),
    "entry with a name": ("k: f(...)", "x = {\n    k: f(1),\n}", (2, 2)),
    "parameter": ("k=None", "def f(\n    a,\n    k=None,\n): ...", (3, 3)),
    "annotated parameter": ("k: int", "def f(\n    k: int,\n): ...", (2, 2)),
    "parameter with all": ("k: int = 0", "def f(\n    k: int = 0,\n): ...", (2, 2)),
    "parameter without its type": ("k=0", "def f(\n    k: int = 0,\n): ...", (2, 2)),
    "a statement goes before pieces": ("k=1", "f(\n    k=1,\n)\nk = 1\n", (4, 4)),
    # --- the innermost node that is like it ---
    "inner call": ("f(...)", "g(\n    f(a),\n)", (2, 2)),
    "one of a chain": ("a or b", "a or b or c", (1, 1)),
    "the longest chain": ("a or ...", "x = a or b or c or d", (1, 1)),
    "chained assignment": ("y = 1", "x = y = 1", (1, 1)),
    "name": ("grad_output", "x = f(grad_output)", (1, 1)),
    "number": ("1_000", "f(1_000)", (1, 1)),
    "docstring": ("'''Doc.'''", 'def f():\n    """Doc."""\n', (2, 2)),
    "not ASCII": ("größe = ...", "größe = 1", (1, 1)),
}  # fmt: skip


@pytest.mark.parametrize(("pattern", "source", "lines"), FOUND.values(), ids=FOUND)
def test_pattern_finds_its_place(pattern, source, lines):
    assert find(pattern, source) == [lines]


# pattern, source without a match
NOT_FOUND = {
    "async unwritten": ("def f(...):", DEF),
    "async with unwritten": ("with a as b, c():", WITH),
    "async written": ("async def f():", "def f():\n    a\n"),
    "bases unwritten": ("class A:", "class A(B):\n    c\n"),
    "brackets of bases written": ("class A(...):", "class A:\n    b\n"),
    "parameters unwritten": ("def f():", "def f(a):\n    b\n"),
    "default unwritten": ("def f(a):", "def f(a=1):\n    b\n"),
    "result written": ("def f() -> ...:", "def f():\n    a\n"),
    "another result": ("def f() -> int:", "def f() -> str:\n    a\n"),
    "another annotation": ("x: int = 3", "x: str = 3"),
    "annotation written": ("x: int = 3", "x = 3"),
    "value unwritten": ("x: int", "x: int = 3"),
    "cause unwritten": ("raise E(...)", "raise E() from e"),
    "text of an assertion unwritten": ("assert a", "assert a, b"),
    "name of a manager unwritten": ("with a:", "with a as b:\n    c\n"),
    "second manager unwritten": ("with a:", "with a, b:\n    c\n"),
    "name of an error unwritten": ("except E:", "try:\n a\nexcept E as e:\n b\n"),
    "condition of a comprehension": ("[a for a in b]", "[a for a in b if c]"),
    "guard unwritten": ("case 1:", "match a:\n    case 1 if b:\n        c\n"),
    "argument unwritten": ("f(a)", "f(a, b)"),
    "keyword unwritten": ("f(k=1)", "f(a, k=1)"),
    "order of keywords": ("f(a=1, b=2)", "f(b=2, a=1)"),
    "positional for keyword": ("f(1)", "f(a=1)"),
    "decorator unwritten": ("@a\nclass A: ...", "@a\n@b\nclass A:\n    c\n"),
    "another decorator": ("@a\ndef f():", "@b\ndef f():\n    c\n"),
    "decorator not there": ("@a\ndef f():", "def f():\n    c\n"),
    "else unwritten behind a body": ("if a:\n    b()", IF),
    "statement unwritten": ("if a:\n    b()", "if a:\n    b()\n    c()\n"),
    "header for another statement": ("while a:", IF),
    "elif for if": ("if c:", IF),
    "value of return": ("return ...", "return"),
    "tuple for a list": ("[a, b]", "(a, b)"),
    "tuple for a group": ("(a,)", "(a)"),
    "set for a dictionary": ("{a, ...}", "{a: b}"),
    "another operator": ("a + b", "a - b"),
    "another order": ("a - b - c", "a - (b - c)"),
    "another grouping": ("(a + b) * c", "a + b * c"),
    "chain of another kind": ("x = a or ...", "x = a and b"),
    "too short a chain": ("x = a or ... or c", "x = a or c"),
    "a chain's parts apart": ("b or c", "a or b or c"),
    "longer name": ("all_reduce(...)", "all_reduce_coalesced(a)"),
    "end of a longer name": ("reduce(...)", "all_reduce(a)"),
    "attribute of a name": ("g(...)", "f.g(a)"),
    "in a comment": ("f(...)", "a  # f(b)"),
    "in a string": ("f(...)", "'f(a)'"),
    "string with other text": ("'a...b'", "'axxb'"),
    "prefix of a string": ("f'a'", "'a'"),
    "bytes for a string": ("b'a'", "'a'"),
    "gap in an f-string": ("f'{...}'", "f'{a}'"),
    "escape for its character": ("f('a\\t')", "f('a\t')"),
    "another number": ("1000", "1_000"),
    "empty list": ("[a, ...]", "[]"),
    "gap between that takes too much": ("f(a, ..., a)", "f(a)"),
    "relative for absolute": ("from .a import b", "from a import b"),
    "another attribute": ("a.b.c", "a.c"),
    "walrus for an assignment": ("(a := 1)", "a = 1"),
    "nothing": ("f(...)", ""),
}


@pytest.mark.parametrize(("pattern", "source"), NOT_FOUND.values(), ids=NOT_FOUND)
def test_pattern_finds_nothing_else(pattern, source):
    assert find(pattern, source) == []


SEVERAL = {
    "in source order": ("f(...)", "f(1)\ng(f(2))\nf(3)\n", [(1, 1), (2, 2), (3, 3)]),
    "one in another": ("f(...)", "f(\n    f(1)\n)\n", [(1, 3), (2, 2)]),
    "annotated or not": ("x = ...", "x: int = 1\nx = 2\n", [(1, 1), (2, 2)]),
    "all kinds of pieces": (
        "k=...", "f(k=1)\ndef g(k=2): ...\nh(k=3)\n", [(1, 1), (2, 2), (3, 3)],
    ),
    "clauses": ("else:", TRY + IF, [(7, 7), (15, 15)]),
    "chains side by side": ("a or ...", "a or b\na or c or d\n", [(1, 1), (2, 2)]),
    "a name each time": ("x", "x = x + x\n", [(1, 1), (1, 1), (1, 1)]),
}  # fmt: skip


@pytest.mark.parametrize(("pattern", "source", "lines"), SEVERAL.values(), ids=SEVERAL)
def test_every_match_is_found_once(pattern, source, lines):
    assert find(pattern, source) == lines


REFUSED = {
    "nothing": ("", "is not one expression"),
    "white space": (" \n ", "is not one expression"),
    "only a comment": ("# f()", "is not one expression"),
    "two statements": ("a\nb", "is not one expression"),
    "two on a line": ("a; b", "(a range of several has 'from' and 'to')"),
    "not Python": ("if if", "is not one expression"),
    "an open bracket": ("f(a", "is not one expression"),
    "a closing bracket": ("f)", "is not one expression"),
    "two arguments": ("a=1, b=2, *", "is not one expression"),
    "out of a piece": ("k=1), g(j=2", "is not one expression"),
    "a piece of a header": ("if a: b else", "is not one expression"),
    "a gap behind an expression": ("f(...) ...", "is not one expression"),
    "a null byte": ("\0", "is not one expression"),
    "only a gap": ("...", "matches everything"),
    "an empty string": ("''", "matches everything"),
    "too long": ("f(" + "a, " * 1_000 + ")", "too long: got 3,003 characters"),
    "too deep in calls": ("f(" * 200 + ")" * 200, "nested deeper than 100 levels"),
    "too deep in lists": ("[" * 200 + "]" * 200, "nested deeper than 100 levels"),
    "too deep in attributes": ("x" + ".a" * 500, "nested deeper than 100 levels"),
    "too deep in negations": ("not " * 400 + "x", "nested deeper than 100 levels"),
}


@pytest.mark.parametrize(("pattern", "message"), REFUSED.values(), ids=REFUSED)
def test_text_that_is_no_pattern_is_refused(pattern, message):
    with pytest.raises(AnchorError) as caught:
        Pattern(pattern)
    assert message in str(caught.value)


def test_parentheses_do_not_nest():
    assert find("(" * 900 + "x" + ")" * 900, "f(x)") == [(1, 1)]


def test_long_chain_is_compared_as_one_list():
    chain = "x = a0" + "".join(f" + a{n}" for n in range(1, 400))
    assert find("x = a0 + ... + a399", chain) == [(1, 1)]
    assert find("x = a0 + ... + a398", chain) == []


def test_word_in_thousands_of_places_asks_for_a_symbol():
    with pytest.raises(AnchorError, match="'x' stands in over 2,000 places here"):
        find("x + 1", "x\n" * 2_001)
    assert find("x + 1", "x\n" * 1_999 + "x + 1\n") == [(2_000, 2_000)]


def test_search_can_begin_behind_a_byte_and_stay_in_scopes():
    file = SourceFile("a.py", b"f(1)\ndef g():\n    f(2)\n    f(3)\nf(4)\n")
    pattern = Pattern("f(...)")
    [scope] = [symbol.scope for symbol in file.symbols["g"]]
    inside = pattern.find([scope], file.data)
    assert [match.first for match in inside] == [3, 4]
    behind = pattern.find([file.root], file.data, inside[0].node.start_byte + 1)
    assert [match.first for match in behind] == [4, 5]


def test_match_that_begins_before_the_byte_does_not_count():
    file = SourceFile("a.py", b"y = f(a(1), key)\n")
    begin = file.data.index(b"a(")
    for text in ("y = f(..., key)", "f(..., key)", "f(...)"):
        assert Pattern(text).find([file.root], file.data)
        assert not Pattern(text).find([file.root], file.data, begin)


LAID_OUT = ["a.b.c(1)", "a.b.c (1)", "a . b.c(1)", "(a.b).c(1)", "(a.b.c)(1)"]
LAID_OUT += [
    "(a\n .b  # why\n .c)(\n1\n)",
    "a.b.\\\nc(1)",
    "f(a.b.c(1))",
    "a.b.c(x for x in y)",
]
OTHERS = ["a.b.c", "x.a.b.c(1)", "xa.b.c(1)", "a.x.c(1)", "a.b.cc(1)", "a[0].b.c(1)"]
OTHERS += [
    "a.b.x(c(1))",
    "b.c(1)",
    "# a.b.c(1)",
    "'a.b.c(1)'",
    "def c(a): ...",
    "a.b.c[1]",
]


@pytest.mark.parametrize("source", LAID_OUT)
def test_call_of_a_name_is_found_however_it_is_laid_out(source):
    assert len(find("a.b.c(...)", source)) == 1


@pytest.mark.parametrize("source", OTHERS)
def test_call_of_another_name_is_not_found(source):
    assert find("a.b.c(...)", source) == []


def test_bytes_that_are_not_utf8_are_compared_as_bytes():
    file = SourceFile("a.py", b'f("\xff")\nf("a")\n')
    matches = Pattern('f("a")').find([file.root], file.data)
    assert [match.first for match in matches] == [2]


# --- against Python's own parser ---


def random_expression(choose: random.Random, depth: int = 0) -> str:
    """Return an expression whose names and numbers are all its own."""

    def part() -> str:
        return random_expression(choose, depth + 1)

    name = f"n{choose.randrange(10**9)}"
    if depth > 3:
        return name
    a, b = part(), part()
    return choose.choice(
        [
            name,
            f"{name}({a}, {b})",
            f"{name}(*{name}2, k={a})",
            f"[{a}, {b}]",
            f"{{{name}: {a}}}",
            f"{name}[{a}:{b}]",
            f"{name}.{name}3",
            f"({a}) + {b}",
            f"({a}) or ({b})",
            f"({a}, {b})",
            f"'{name}...'",
            f"(lambda {name}: {a})",
            f"(not ({a}))",
            f"({a}) if ({b}) else {name}",
        ]
    )


@settings(max_examples=40)
@given(seed=some.integers(min_value=0))
def test_expression_finds_itself_however_it_is_laid_out(seed):
    choose = random.Random(seed)
    expression = random_expression(choose)
    source = f"first()\nx = ({expression})\nlast()\n"
    assert ast.parse(source)
    laid_out = ast.unparse(ast.parse(expression))
    assert (2, 2) in find(f"x = {expression}", source)
    assert (2, 2) in find(f"x = {laid_out}", source)


@settings(max_examples=40)
@given(seed=some.integers(min_value=0))
def test_expression_with_another_name_is_another(seed):
    choose = random.Random(seed)
    expression = random_expression(choose)
    names = sorted({node.id for node in ast.walk(ast.parse(expression))
                    if isinstance(node, ast.Name)} or {"n"})  # fmt: skip
    other = expression.replace(choose.choice(names), "other")
    found = find(f"x = {other}", f"x = {expression}\n")
    assert bool(found) == (other == expression)
