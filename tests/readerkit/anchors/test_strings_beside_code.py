"""Brackets and words that only a string says are no code, in any language."""

from __future__ import annotations

import pytest

from readerkit.anchors import Anchor, SourceFile, resolve
from readerkit.errors import AnchorError

C = 'int f() {\n  log("a(", 2,\n    3);\n  g(1);\n  log(")");\n}\n'


@pytest.mark.parametrize(
    ("path", "text", "anchor", "lines"),
    [
        ("a.c", C, {"code": "log(...)", "nth": 1}, (2, 3)),
        ("a.c", C, {"code": "log(...)", "nth": 2}, (5, 5)),
        ("a.c", C, {"code": 'log("a(", ...)'}, (2, 3)),
        ("a.c", C, {"code": 'log(")")'}, (5, 5)),
        (
            "a.c",
            "int f() {\n  if (c == '{') {\n    a();\n  }\n  b();\n}\n",
            {"code": "if (...) {...}"},
            (2, 4),
        ),
        (
            "a.js",
            "function f() {\n  if (/[{]/.test(x)) {\n    a();\n  }\n  b();\n}\n",
            {"code": "if (...) {...}"},
            (2, 4),
        ),
        (
            "a.js",
            "function f() {\n  if (x == '}') {\n    a(';');\n  }\n  b();\n}\n",
            {"code": "if (...) {...}"},
            (2, 4),
        ),
        ("a.js", "x(`a ${foo(\n  1)} (`);\ny();\n", {"code": "foo(...)"}, (1, 2)),
        (
            "a.rs",
            "fn f<'a>(x: &'a str) {\n  if y {\n    b('(');\n  }\n  c();\n}\n",
            {"code": "if y {...}"},
            (2, 4),
        ),
        (
            "a.go",
            "package a\nfunc f() {\n  log(`(`, '(',\n    1)\n  g(1)\n}\n",
            {"code": "log(...)"},
            (3, 4),
        ),
        (
            "a.java",
            "class A {\n  void f() {\n    log(\"(\",\n      ')');\n    g();\n  }\n}\n",
            {"code": "log(...)"},
            (3, 4),
        ),
    ],
)
def test_a_bracket_in_a_string_opens_and_closes_nothing(path, text, anchor, lines):
    span = resolve(Anchor(path, **anchor), SourceFile(path, text.encode()))
    assert (span.first, span.last) == lines


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.c", 'int f() {\n  log("foo(1)");\n}\n'),
        ("a.js", "function f() {\n  log(`foo(1)`);\n  /foo(1)/.test(x);\n}\n"),
        ("a.rs", 'fn f() {\n  log("foo(1)", r"foo(1)");\n}\n'),
        ("a.go", 'package a\nfunc f() {\n  log("foo(1)", `foo(1)`)\n}\n'),
        ("a.java", 'class A {\n  String s = "foo(1)";\n}\n'),
        ("a.ts", "const s: string = 'foo(1)';\n"),
    ],
)
def test_what_a_string_says_is_no_code(path, text):
    with pytest.raises(AnchorError, match="no match for"):
        resolve(Anchor(path, code="foo(...)"), SourceFile(path, text.encode()))
