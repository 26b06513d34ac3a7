"""What stands among some lines: each line in one statement, and what that does."""

from __future__ import annotations

import pytest

from readerkit.anchors import SourceFile
from readerkit.anchors.statements import statements

CODE = b"""\
@traced
def f(x,
      y):
    \"\"\"Say.\"\"\"
    # one
    # two
    import os

    a.b = g.h(x)
    c, d = 1, 2
    n += k(
        y
    )
    if x:
        go()
    elif y: stay()
    else:
        return (
            last(x)
        )
    for i in x:
        assert i
    with lock:
        raise E
    try:
        del a
    except E:
        pass
    x[0]
    return
"""
FOUND = [
    (1, 1, "other", "", ""),
    (2, 3, "defines", "f", ""),
    (4, 4, "docstring", "", ""),
    (5, 6, "comment", "", ""),
    (7, 7, "imports", "", ""),
    (8, 8, "blank", "", ""),
    (9, 9, "assigns", "a.b", "g.h"),
    (10, 10, "assigns", "c, d", ""),
    (11, 13, "changes", "n", "k"),
    (14, 14, "condition", "", ""),
    (15, 15, "calls", "", "go"),
    (16, 16, "condition", "", ""),
    (17, 17, "branch", "", ""),
    (18, 20, "returns", "", "last"),
    (21, 21, "loop", "", ""),
    (22, 22, "asserts", "", ""),
    (23, 23, "context", "", ""),
    (24, 24, "raises", "", ""),
    (25, 25, "branch", "", ""),
    (26, 26, "other", "", ""),
    (27, 27, "branch", "", ""),
    (28, 28, "other", "", ""),
    (29, 29, "other", "", ""),
    (30, 30, "returns", "", ""),
]


def found(first, last):
    rows = statements(SourceFile("a.py", CODE), first, last)
    return [(each.first, each.last, each.does, each.name, each.by) for each in rows]


def test_each_line_stands_in_one_statement():
    assert found(1, 30) == FOUND


@pytest.mark.parametrize(("first", "last"), [(12, 12), (8, 11), (3, 5), (20, 30)])
def test_part_of_a_file_has_the_statements_that_touch_it(first, last):
    rows = found(first, last)
    assert (rows[0][0], rows[-1][1]) == (first, last)
    does = [row[2] for row in FOUND if row[0] <= last and first <= row[1]]
    assert [row[2] for row in rows] == does
