"""Small facts about bytes and nodes that symbols and patterns share."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

_WITH_BODY = ("_statement", "_definition", "_clause", "block")


def occurrences(
    text: bytes, source: bytes, start: int = 0, end: int | None = None
) -> Iterator[int]:
    """Yield where ``text`` stands in ``source[start:end]``, overlaps left out."""
    stop = len(source) if end is None else end
    position = source.find(text, start, stop)
    while position >= 0:
        yield position
        position = source.find(text, position + len(text), stop)


def last_row(node: Node) -> int:
    """Return the row of a node's last token, counted from 0.

    The grammar takes comments at the end of a body into the body; Python's own parser
    and a reader do not: a definition ends with its last statement.
    """
    while node.type.endswith(_WITH_BODY):
        index = node.child_count - 1
        child = node.child(index)
        while child is not None and child.type == "comment" and index > 0:
            index -= 1
            child = node.child(index)
        if child is None:
            break
        node = child
    return node.end_point[0]
