"""What a span ends with, and what a line gives a value to, tell where it went."""

import pytest

from readerkit.anchors.drift.engine import carry
from readerkit.anchors.drift.statement_ends import (
    last_statement,
    statement_end,
    target_of,
)
from readerkit.anchors.drift.text import FileText
from readerkit.model.anchor import Span

BRANCH = """\
def choose(options, limit):
    chosen = options.first
    if options.fast:
        chosen = options.quick
        record(chosen)
    return chosen
"""
BRANCH_GREW = """\
import time


def choose(options, limit):
    chosen = options.first
    if options.fast:
        started = time.monotonic()
        chosen = options.quick_of(limit)
        record(chosen, started)
        tell(limit)
    return chosen
"""
ELSE = BRANCH.replace("    return", "    else:\n        refuse(limit)\n    return")
ELSE_LEFT = BRANCH.replace("        record(chosen)\n", "    refuse(limit)\n")
LOOP = """\
int total(const int* values, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += values[i];
  }
  return sum;
}
"""
LOOP_GREW = """\
int total(const int* values, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    if (values[i] < 0) {
      continue;
    }
    sum += weigh(values[i]);
  }
  return sum;
}
"""
SETTINGS = """\
def start(self, hidden, heads, group):
    self.hidden = hidden
    self.heads = heads
    self.group = group
    self.ready()
"""
SETTINGS_MOVED = """\
def start(self, config):
    self.group = config.groups().tensor_parallel
    self.dropout = config.dropout_of_hidden
    self.hidden = config.hidden_size
    self.heads = config.number_of_attention_heads
    self.ready()
"""


@pytest.mark.parametrize(
    ("path", "before", "after", "span", "expected"),
    [
        ("a.py", BRANCH, BRANCH_GREW, (3, 5), (6, 10)),
        ("a.py", ELSE, ELSE.replace("record(", "note("), (3, 7), (3, 7)),
        ("a.py", ELSE, ELSE_LEFT, (3, 7), (3, 4)),
        ("a.cpp", LOOP, LOOP_GREW, (3, 5), (3, 8)),
        ("a.py", SETTINGS, SETTINGS_MOVED, (2, 2), (4, 4)),
        ("a.py", SETTINGS, SETTINGS_MOVED, (4, 4), (2, 2)),
    ],
    ids=["grew", "else", "shrank", "braces", "value", "value, out of order"],
)
def test_an_edited_statement_is_found_whole(path, before, after, span, expected):
    [verdict] = carry(
        [Span(path, *span)], {path: before.encode()}, {path: after.encode()}
    )
    assert verdict.to == Span(path, *expected)
    assert verdict.status in ("edited", "unsure")


def test_lines_that_are_all_there_do_not_take_what_came_behind():
    after = BRANCH.replace("        record(chosen)\n", "        record(chosen)\n" * 2)
    [verdict] = carry(
        [Span("a.py", 3, 5)], {"a.py": BRANCH.encode()}, {"a.py": after.encode()}
    )
    assert verdict.to == Span("a.py", 3, 5)


def test_a_line_that_went_past_others_is_not_gone():
    lines = [f"    step_{n}(value, limit={n})\n" for n in range(8)]
    before = "def run(value):\n" + "".join(lines)
    after = "def run(value):\n" + "".join([*lines[1:], lines[0]])
    [verdict] = carry(
        [Span("a.py", 2, 2)], {"a.py": before.encode()}, {"a.py": after.encode()}
    )
    assert verdict.to == Span("a.py", 9, 9)


@pytest.mark.parametrize(
    ("code", "first", "last"),
    [
        ("if a:\n    b\nelif c:\n    d\nelse:\n    e\nf\n", 0, 5),
        ("if a:\n    b\nelif c:\n    d\nelse:\n    e\nf\n", 2, 5),
        ("call(\n    a,\n)\nb\n", 0, 2),
        ("def f():\n    a\n\n    # the end\n\nb\n", 0, 1),
        ('x = """\nflush left\n"""\ny\n', 0, 2),
        ("for a in b:\n    c\nif d:\n    e\n", 0, 1),
        ("while a:\n    b", 0, 1),
    ],
)
def test_a_statement_ends_where_what_is_inside_it_ends(code, first, last):
    text = FileText(code.encode())
    assert statement_end(text, first, is_python=True) == last
    found = last_statement(text, first, last, is_python=True)
    assert found == first


@pytest.mark.parametrize(
    ("line", "target"),
    [
        (b"  self.x = 3", b"self.x"),
        (b"x: int = 4", b"x"),
        (b"    group=group,", b"group"),
        (b"  const auto size = 3;", b"size"),
        (b'  "key": 3,', b'"key"'),
        (b"from a.b import c, d", b"froma.bimport"),
        (b"if a == b:", b""),
        (b"def f(a=3):", b""),
        (b"call(a=3)", b""),
    ],
)
def test_a_line_is_known_by_what_it_gives_a_value_to(line, target):
    assert target_of(line) == target
