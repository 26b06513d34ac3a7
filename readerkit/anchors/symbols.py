"""The classes and functions of a file, by qualified name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_letters, digits
from typing import Literal

from tree_sitter import Node

from readerkit.anchors.tree import last_row, occurrences

_DEFINITIONS: dict[str, Literal["class", "function"]] = {
    "class_definition": "class",
    "function_definition": "function",
}
_LETTERS = {*map(str.encode, f"{ascii_letters}{digits}_")}


@dataclass(slots=True)  # not frozen: that makes each one three times as slow
class Symbol:
    """One definition of a class or function."""

    name: str
    """Qualified: ``Class.method``, ``outer.inner``."""
    kind: Literal["class", "function"]
    node: Node
    """From ``def`` or ``class`` to the end of the body."""
    scope: Node
    """The same with its decorators."""
    label: Node | None = None
    """Its name, where another language than Python is read."""

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

    A cursor goes from one word that can begin a definition to the next, down only where
    one stands: it enters a definition first when it gets to its own word.
    """
    cursor = root.walk()
    enclosing: list[tuple[int, str]] = []  # (end of a definition, prefix outside)
    prefix = ""
    for at in _words(source):
        node = cursor.node
        while node is not None and node.end_byte <= at and cursor.goto_parent():
            node = cursor.node
        while enclosing and enclosing[-1][0] <= at:
            prefix = enclosing.pop()[1]
        while cursor.goto_first_child_for_byte(at) is not None:
            above, node = node, cursor.node
            assert node is not None and above is not None  # a cursor stands on a node
            if node.start_byte > at:
                break
            kind = _DEFINITIONS.get(node.type)
            if kind is None:
                continue
            label = node.child_by_field_name("name")
            if label is not None and label.text:
                name = prefix + label.text.decode("utf-8", "replace")
                is_decorated = above.type == "decorated_definition"
                yield Symbol(name, kind, node, above if is_decorated else node)
                enclosing.append((node.end_byte, prefix))
                prefix = name + "."
            break


def _words(source: bytes) -> list[int]:
    """Return where ``def`` and ``class`` stand, in source order."""
    return sorted(
        at
        for word in (b"def", b"class")
        for at in occurrences(word, source)
        if source[at + len(word) : at + len(word) + 1] not in _LETTERS
        and source[at - 1 : at] not in _LETTERS
    )
