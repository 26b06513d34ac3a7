"""Every token of a line gets the grammar's own mark."""

from __future__ import annotations

import pytest

from readerkit.anchors import SourceFile
from readerkit.anchors.highlight import Mark, highlight, stretches
from tests.readerkit.anchors.languages import SOURCES

SOURCE = '''\
"""A module
of two lines."""


@wrap
def f(größe, limit=1_000):
    # a comment
    return sum(größe.values) + "text"  # end
'''


def marked(source: str | bytes, first: int, last: int) -> list[tuple[int, str, str]]:
    """Return line, text and kind of every mark."""
    data = source if isinstance(source, bytes) else source.encode()
    file = SourceFile("a.py", data)
    found = []
    for mark in highlight(file, first, last):
        line = file.raw_lines[mark.line - 1]
        found.append((mark.line, line[mark.start : mark.end].decode(), mark.kind))
    return found


KINDS = {
    "docstring": (1, '"""A module', "string"),
    "second line of a docstring": (2, 'of two lines."""', "string"),
    "keyword": (6, "def", "keyword"),
    "function": (6, "f", "function"),
    "number": (6, "1_000", "number"),
    "name that is not ASCII": (6, "größe", "variable"),
    "comment": (7, "# a comment", "comment"),
    "comment at the end": (8, "# end", "comment"),
    "return": (8, "return", "keyword"),
    "builtin call": (8, "sum", "function.builtin"),
    "attribute": (8, "values", "property"),
    "operator": (8, "+", "operator"),
    "string": (8, '"text"', "string"),
}


@pytest.mark.parametrize("expected", KINDS.values(), ids=KINDS)
def test_token_has_its_kind(expected):
    assert expected in marked(SOURCE, 1, 8)


def test_only_the_lines_asked_for_are_marked():
    assert {line for line, *_ in marked(SOURCE, 7, 8)} == {7, 8}
    assert {line for line, *_ in marked(SOURCE, 2, 2)} == {2}
    assert marked(SOURCE, 3, 4) == []


def test_outer_marks_come_before_inner_ones():
    marks = highlight(SourceFile("a.py", b"x = f'a{y}b'\n"), 1, 1)
    assert marks.index(Mark(1, 4, 12, "string")) < marks.index(
        Mark(1, 8, 9, "variable")
    )


def test_line_ends_and_a_byte_order_mark_move_no_mark():
    windows = b"\xef\xbb\xbf" + SOURCE.replace("\n", "\r\n").encode()
    found = [(line, text.strip(), kind) for line, text, kind in marked(windows, 1, 8)]
    assert found == marked(SOURCE, 1, 8)


def test_what_does_not_parse_is_marked_as_far_as_it_does():
    assert (2, "return", "keyword") in marked("def f(:\n    return 1\n", 1, 2)


def test_endless_line_is_shown_without_marks():
    data = b"x = 1\ny = " + b"f(" * 30_000 + b")" * 30_000 + b"\n"
    assert marked(data, 2, 2) == []
    assert (1, "1", "number") in marked(data, 1, 1)


@pytest.mark.parametrize("path", SOURCES)
def test_what_is_wanted_is_as_all_marks_have_it(path):
    """A page looks for a seventh of them, and colours the same bytes.

    Apart from what a pattern calls otherwise later, without a colour: a type ``void``.
    """
    source = SourceFile(path, SOURCES[path])

    def kind_of(kind: str) -> str | None:
        family = kind.partition(".")[0]
        return family if family in {"comment", "string", "keyword"} else None

    starts, raw = source.line_starts, source.raw_lines
    marks = highlight(source, 1, len(raw))
    expected = {
        (
            starts[m.line - 1] + m.start,
            starts[m.line - 1] + min(m.end, len(raw[m.line - 1])),
            kind_of(m.kind),
        )
        for m in marks
        if kind_of(m.kind)
    }
    expected = {each for each in expected if each[0] < each[1]}
    found = set(stretches(source, kind_of))
    more = {source.data[begin:end] for begin, end, _ in found - expected}
    assert expected <= found
    assert len(expected) > 2
    assert more <= {b"void"}
