"""A file is its bytes: lines as git counts them, whatever they hold."""

from __future__ import annotations

import pytest

from readerkit.anchors import Anchor, SourceFile, Span, resolve
from readerkit.anchors.source import MAX_BYTES, MAX_LINE_BYTES
from readerkit.errors import AnchorError

LINES = {
    "nothing": (b"", []),
    "one line": (b"a", ["a"]),
    "a line end at the end": (b"a\n", ["a"]),
    "an empty line at the end": (b"a\n\n", ["a", ""]),
    "only a line end": (b"\n", [""]),
    "CRLF": (b"a\r\n\r\nb\r\n", ["a", "", "b"]),
    "CR alone ends no line": (b"a\rb\n", ["a\rb"]),
    "form feed ends no line": (b"a\x0cb\n", ["a\x0cb"]),
    "Unicode separators end no line": ("a\u2028b\x85c".encode(), ["a\u2028b\x85c"]),
    "byte order mark": (b"\xef\xbb\xbfa\n", ["a"]),
    "a second byte order mark": (b"\xef\xbb\xbf" * 2 + b"a\n", ["\ufeffa"]),
    "not UTF-8": (b"a\xff\xfeb\n", ["a\ufffd\ufffdb"]),
    "tabs": (b"\ta\n", ["\ta"]),
}


@pytest.mark.parametrize(("data", "lines"), LINES.values(), ids=LINES)
def test_lines_are_counted_as_git_counts_them(data, lines):
    file = SourceFile("a.py", data)
    assert [file.line(number) for number in range(1, len(lines) + 1)] == lines
    assert len(file.raw_lines) == len(lines)


SAME = "import a\n\n\ndef f(x):\n    y = g(\n        x,\n    )\n    return y\n"
SPELT = {
    "LF": SAME.encode(),
    "CRLF": SAME.replace("\n", "\r\n").encode(),
    "byte order mark": b"\xef\xbb\xbf" + SAME.encode(),
    "byte order mark and CRLF": b"\xef\xbb\xbf" + SAME.replace("\n", "\r\n").encode(),
    "tabs": SAME.replace("    ", "\t").encode(),
    "no line end at the end": SAME.strip().encode(),
    "not UTF-8": SAME.replace("import a", "a = '?'").encode().replace(b"?", b"\xff"),
    "broken above": SAME.replace("import a", "import (").encode(),
    "broken below": SAME.encode() + b"def (:\n",
}


@pytest.mark.parametrize("data", SPELT.values(), ids=SPELT)
def test_how_bytes_are_spelt_moves_no_anchor(data):
    file = SourceFile("a.py", data)
    assert resolve(Anchor("a.py", symbol="f"), file) == Span("a.py", 4, 8)
    inside = Anchor("a.py", symbol="f", code="y = g(x)")
    assert resolve(inside, file) == Span("a.py", 5, 7)
    query = Anchor("a.py", symbol="f", query="(return_statement) @anchor")
    assert resolve(query, file) == Span("a.py", 8, 8)


@pytest.mark.parametrize("path", ["a.py", "a.rs"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x = 1 # \0\n", "got a binary file, expected source"),
        ("x = 1\n".encode("utf-16"), "got UTF-16, expected UTF-8: iconv -f UTF-16"),
        (b"\xfe\xff\0x\0\n", "got UTF-16, expected UTF-8"),
    ],
)
def test_bytes_that_are_no_source_are_refused(path, data, message):
    with pytest.raises(AnchorError, match=message):
        SourceFile(path, data)


SIZES = {
    "the largest file": (b"x = 1\n" * (MAX_BYTES // 6), ""),
    "a byte more": (b"#" * 80 + b"\n" + b"\n" * MAX_BYTES, "got 2,000,081 bytes"),
    "the longest line": (b"#" * MAX_LINE_BYTES + b"\n", ""),
    "a byte more in a line": (
        b"x\n" + b"#" * (MAX_LINE_BYTES + 1),
        "got a line of 200,001 bytes, expected at most 200,000",
    ),
    "five megabytes in a line": (b"#" * 5_000_000, "got 5,000,000 bytes, expected at"),
}


@pytest.mark.parametrize(("data", "message"), SIZES.values(), ids=SIZES)
def test_size_has_a_limit_that_is_told(data, message):
    if not message:
        assert SourceFile("a.py", data).raw_lines
        return
    with pytest.raises(AnchorError) as caught:
        SourceFile("lib/a.py", data)
    assert str(caught.value).startswith("lib/a.py: skipped: ")
    assert message in str(caught.value)


def test_tree_and_symbols_are_made_once():
    file = SourceFile("a.py", SAME.encode())
    assert file.root is file.root
    assert file.symbols is file.symbols
    assert file.raw_lines is file.raw_lines


NESTED = """\
class A:
    def f(self):
        def g():
            return 1

        return g

    x = 2


y = 3
"""
AROUND = {
    "in the innermost": (4, 4, "A.f.g"),
    "its header": (3, 3, "A.f.g"),
    "beyond the innermost": (4, 6, "A.f"),
    "in the class": (8, 8, "A"),
    "at module level": (11, 11, ""),
    "over several": (1, 11, ""),
}


@pytest.mark.parametrize(("first", "last", "name"), AROUND.values(), ids=AROUND)
def test_smallest_definition_around_lines_is_named(first, last, name):
    symbol = SourceFile("a.py", NESTED.encode()).symbol_around(first, last)
    assert (symbol.name if symbol else "") == name


# --- code that does not parse ---

BROKEN = """\
def before():
    return 1


class A:
    def f(self):
        x = 1)

    def g(self):
        return 2


def after():
    return 3
"""
UNCLOSED = BROKEN.replace("1)", "(1,")
TORN = "import (\n\nx = 1\n    def g():\n        return 3\n"
UNQUOTED = '''\
def a():
    """Doc.
    x = f(1)

def b():
    """Doc.

    Run::

        def z(): pass
    """
    return f(2)
'''
NESTED_DEEP = "".join(" " * n + "if x:\n" for n in range(600)) + " " * 600 + "f()\n"


@pytest.mark.parametrize(("name", "line"), [("before", 1), ("after", 13)])
def test_code_beside_a_break_keeps_its_anchor(name, line):
    file = SourceFile("a.py", BROKEN.encode())
    assert resolve(Anchor("a.py", symbol=name), file) == Span("a.py", line, line + 1)


REFUSED = {
    "the whole definition": (BROKEN, {"symbol": "A"}, "a.py:7: "),
    "what is broken": (BROKEN, {"symbol": "A.f"}, "a.py:7: "),
    "code around it": (BROKEN, {"code": "class A:"}, "outside lines 5-10"),
    "code beside it": (BROKEN, {"code": "return 2"}, "outside lines 5-10"),
    "code that it hides": (UNCLOSED, {"code": "return 2"}, "line 7 does not parse"),
    "a symbol that it hides": (UNCLOSED, {"symbol": "A.g"}, "line 7 does not parse"),
    "a range over it": (BROKEN, {"start": "return 1", "stop": "return 3"}, "a.py:7: "),
    "a query": (BROKEN, {"query": "((integer) @anchor (#eq? @anchor 2))"}, "a.py:7: "),
    "quotes that do not close": (UNQUOTED, {"symbol": "a"}, "a.py:2: "),
    "a string that became code": (UNQUOTED, {"code": "f(...)"}, "a.py:2: "),
    "indented at the top": (TORN, {"symbol": "g"}, "a.py:4: "),
    "more levels than are counted": (NESTED_DEEP, {"code": "f(...)"}, "a.py:1: "),
}


@pytest.mark.parametrize(("source", "keys", "message"), REFUSED.values(), ids=REFUSED)
def test_anchor_into_code_that_does_not_parse_says_so(source, keys, message):
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor("a.py", **keys), SourceFile("a.py", source.encode()))
    assert "does not parse" in str(caught.value) and message in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\n\n\n", b"   ", b"\xef\xbb\xbf\n"])
def test_blank_file_has_no_place(data):
    with pytest.raises(AnchorError):
        resolve(Anchor("a.py", query="(module) @anchor"), SourceFile("a.py", data))


@pytest.mark.parametrize(
    "data", [b"x = 1\ny = 2", b"x = 1\ny = 2\n", b"x = 1\r\ny\r\n"]
)
def test_module_ends_with_its_last_line(data):
    whole = resolve(Anchor("a.py", query="(module) @anchor"), SourceFile("a.py", data))
    assert whole == Span("a.py", 1, 2)
