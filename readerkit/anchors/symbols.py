"""The classes and functions of a file, by qualified name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from readerkit.anchors.tree import last_row, occurrences

_DEFINITIONS: dict[str, Literal["class", "function"]] = {
    "class_definition": "class",
    "function_definition": "function",
}
# Where a definition can stand: the walk enters these and skips every expression.
_CONTAINERS = {
    "module",
    "block",
    "decorated_definition",
    "if_statement",
    "elif_clause",
    "else_clause",
    "try_statement",
    "except_clause",
    "except_group_clause",
    "finally_clause",
    "for_statement",
    "while_statement",
    "with_statement",
    "match_statement",
    "case_clause",
    "ERROR",
    *_DEFINITIONS,
}


@dataclass(frozen=True, slots=True)
class Symbol:
    """One definition of a class or function."""

    name: str
    """Qualified: ``Class.method``, ``outer.inner``."""
    kind: Literal["class", "function"]
    node: Node
    """From ``def`` or ``class`` to the end of the body."""
    scope: Node
    """The same with its decorators."""

    @property
    def first(self) -> int:
        """The line of ``def`` or ``class``; decorators do not count."""
        return self.node.start_point[0] + 1

    @property
    def last(self) -> int:
        """The line of the body's last statement; comments behind it do not count."""
        return last_row(self.node) + 1


def collect_symbols(root: Node, source: bytes) -> Iterator[Symbol]:
    """Yield every definition in source order, nested ones after their parent.

    A cursor walks statements only: no recursion, no look at expressions, and no step
    into a body that holds neither of the words that begin a definition.
    """
    words = sorted((*occurrences(b"def", source), *occurrences(b"class", source)))
    words.append(len(source) + 1)
    upcoming = 0
    cursor = root.walk()
    if not cursor.goto_first_child():
        return
    depth = 1
    prefix = ""
    enclosing: list[tuple[int, str]] = []  # (depth of a definition, prefix outside)
    decorated: Node | None = None
    while True:
        node = cursor.node
        assert node is not None  # a cursor stands on a node
        kind = node.type
        entered = False
        if kind in _CONTAINERS:
            begin, end = node.start_byte, node.end_byte
            while words[upcoming] < begin:
                upcoming += 1
            if kind in _DEFINITIONS:
                upcoming += 1  # its own word
                label = node.child_by_field_name("name")
                if label is not None and label.text:
                    name = prefix + label.text.decode("utf-8", "replace")
                    yield Symbol(name, _DEFINITIONS[kind], node, decorated or node)
                    enclosing.append((depth, prefix))
                    prefix = name + "."
            entered = words[upcoming] < end and cursor.goto_first_child()
        if kind != "decorator" and kind != "comment":
            decorated = node if kind == "decorated_definition" else None
        if entered:
            depth += 1
            continue
        while True:
            if enclosing and enclosing[-1][0] == depth:
                prefix = enclosing.pop()[1]
            if cursor.goto_next_sibling():
                break
            if not cursor.goto_parent():
                return
            depth -= 1
