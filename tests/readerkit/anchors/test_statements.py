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
    for j in x:
        continue
    while c.d and not e(x):
        break
    with torch.no_grad():
        q: float
        pass
    return
"""
FOUND = [
    (1, 1, "decorates", "traced", ""),
    (2, 3, "defines", "f", ""),
    (4, 4, "docstring", "", ""),
    (5, 6, "comment", "", ""),
    (7, 7, "imports", "", ""),
    (8, 8, "blank", "", ""),
    (9, 9, "assigns", "a.b", "g.h"),
    (10, 10, "assigns", "c, d", ""),
    (11, 13, "changes", "n", "k"),
    (14, 14, "condition", "x", ""),
    (15, 15, "calls", "", "go"),
    (16, 16, "condition", "y", ""),
    (17, 17, "branch", "", ""),
    (18, 20, "returns", "", "last"),
    (21, 21, "loop", "x", ""),
    (22, 22, "asserts", "i", ""),
    (23, 23, "context", "lock", ""),
    (24, 24, "raises", "E", ""),
    (25, 25, "branch", "", ""),
    (26, 26, "deletes", "a", ""),
    (27, 27, "branch", "", ""),
    (28, 28, "passes", "", ""),
    (29, 29, "other", "", ""),
    (30, 30, "loop", "x", ""),
    (31, 31, "continues", "", ""),
    (32, 32, "repeats", "c.d, e, x", ""),
    (33, 33, "breaks", "", ""),
    (34, 34, "context", "torch.no_grad", ""),
    (35, 35, "declares", "q", ""),
    (36, 36, "passes", "", ""),
    (37, 37, "returns", "", ""),
]


def found(first, last):
    rows = statements(SourceFile("a.py", CODE), first, last)
    return [(each.first, each.last, each.does, each.name, each.by) for each in rows]


def test_each_line_stands_in_one_statement():
    assert found(1, 37) == FOUND


@pytest.mark.parametrize(("first", "last"), [(12, 12), (8, 11), (3, 5), (20, 30)])
def test_part_of_a_file_has_the_statements_that_touch_it(first, last):
    rows = found(first, last)
    assert (rows[0][0], rows[-1][1]) == (first, last)
    does = [row[2] for row in FOUND if row[0] <= last and first <= row[1]]
    assert [row[2] for row in rows] == does
