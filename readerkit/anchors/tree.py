"""Small facts about bytes and nodes that symbols and patterns share."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from readerkit.errors import AnchorError

MAX_DEPTH = 1_000
"""Levels of nesting that a search descends before it gives up on a place."""

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


def check_depth(scope: Node, levels: int) -> None:
    """Refuse code that no person wrote, and that searches take ages in.

    Raises:
        AnchorError: nested deeper than ``MAX_DEPTH``.
    """
    if levels > MAX_DEPTH:
        raise AnchorError(
            f"code nested deeper than {MAX_DEPTH:,} levels at or after line "
            f"{scope.start_point[0] + 1}: expected source that a person wrote; "
            "anchor another place"
        )


def check_whole_depth(scope: Node) -> None:
    """Refuse a scope that is nested too deep anywhere.

    Raises:
        AnchorError: see ``check_depth``.
    """
    cursor = scope.walk()
    levels = 0
    while True:
        if cursor.goto_first_child():
            levels += 1
            check_depth(scope, levels)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            levels -= 1


def last_row(node: Node) -> int:
    """Return the row of a node's last token, counted from 0.

    The grammar takes comments at the end of a body into the body; Python's own parser
    and a reader do not: a definition ends with its last statement.
    """
    while node.type.endswith(_WITH_BODY) and node.child_count:
        index = node.child_count - 1
        child = node.child(index)
        while child is not None and child.type == "comment" and index > 0:
            index -= 1
            child = node.child(index)
        if child is None:
            break
        node = child
    return node.end_point[0]
