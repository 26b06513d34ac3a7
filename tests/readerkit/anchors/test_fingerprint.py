"""A fingerprint follows the tokens: not the layout, not the comments."""

from __future__ import annotations

import pytest

from readerkit.anchors import Fingerprint, SourceFile, Span, fingerprint

BEFORE = '''\
def f(a):
    """Doc."""
    b = a + 1
    # about c
    c = call(
        b, "text",
    )
    return c
'''


def of(source: str, first: int, last: int) -> Fingerprint:
    return fingerprint(Span("a.py", first, last), SourceFile("a.py", source.encode()))


SAME = {
    "other comment": ("# about c", "# something else"),
    "trailing space": ("b = a + 1", "b = a + 1   "),
    "tighter": ("b = a + 1", "b=a+1"),
    "line ends": ("\n", "\r\n"),
}
OTHER = {
    "operator": ("b = a + 1", "b = a - 1"),
    "name": ('b, "text"', 'd, "text"'),
    "string": ('"text"', '"texts"'),
    "docstring": ("Doc.", "Docs."),
}


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME)
def test_layout_and_comments_do_not_count(old: str, new: str) -> None:
    assert of(BEFORE.replace(old, new), 1, 8).code == of(BEFORE, 1, 8).code


@pytest.mark.parametrize(("old", "new"), OTHER.values(), ids=OTHER)
def test_every_token_counts(old: str, new: str) -> None:
    assert of(BEFORE.replace(old, new), 1, 8).code != of(BEFORE, 1, 8).code


def test_each_line_has_its_own_mark_and_comments_have_none() -> None:
    edited = BEFORE.replace("b = a + 1", "b = a + 2")
    lines, others = of(BEFORE, 1, 8).lines, of(edited, 1, 8).lines
    assert len(lines) == 8 and lines[3] == ""
    assert [n for n in range(8) if lines[n] != others[n]] == [2]


def test_neighbours_and_symbol_tell_where_lines_belong() -> None:
    moved = "\n# moved down\n\n" + BEFORE
    here, there = of(BEFORE, 3, 3), of(moved, 6, 6)
    assert (here.before, here.after, here.symbol) == (
        there.before,
        there.after,
        there.symbol,
    )
    edited = of(BEFORE.replace("return c", "return b"), 3, 3)
    assert edited.code == here.code and edited.symbol != here.symbol


def test_no_text_of_the_source_is_kept() -> None:
    marks = of(BEFORE, 1, 8)
    words = {marks.code, marks.before, marks.after, marks.symbol, *marks.lines}
    assert all(set(word) <= set("0123456789abcdef") for word in words)


LAID_OUT = [
    ("yaml", "a.yaml", "a:\n  b: 1\n  c: 2\n", "a:\n  b: 1\nc: 2\n"),
    ("haskell", "a.hs", "f = do\n  when x\n    a\n    b\n",
     "f = do\n  when x\n    a\n  b\n"),
    ("scala", "a.scala", "def f =\n  if x then\n    a()\n    b()\n",
     "def f =\n  if x then\n    a()\n  b()\n"),
]  # fmt: skip


@pytest.mark.parametrize(("package", "path", "old", "new"), LAID_OUT)
def test_indentation_counts_where_it_is_syntax(package, path, old, new) -> None:
    pytest.importorskip(f"tree_sitter_{package}")

    def code(text: str) -> str:
        source = SourceFile(path, text.encode())
        return fingerprint(Span(path, 1, len(text.splitlines())), source).code

    assert code(old) != code(new)
    assert code(old) == code(old.replace("  ", "    "))
