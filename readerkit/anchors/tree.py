"""Small facts about bytes and nodes that symbols and patterns share."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from readerkit.errors import AnchorError
from readerkit.model.code_languages import COMMENTS

MAX_DEPTH = 1_000
"""Levels of nesting that a search descends before it gives up on a place."""

UNCOUNTED = {
    "binary_operator",
    "boolean_operator",
    "parenthesized_expression",
    "typed_parameter",
}
"""Levels that pattern and source may differ in: a chain of operators is nested to the
left, parentheses may only group, a parameter may have an annotation."""

_WITH_BODY = ("_statement", "_definition", "_clause", "block")
_SKIPPED = {"comment", "line_continuation", ","}
# Their parentheses only hold lines together.
_IN_PARENTHESES = {
    "future_import_statement",
    "import_from_statement",
    "with_clause",
}
_CHAINS = {"binary_operator", "boolean_operator"}
_LEVEL_OF = {"-": "+", "/": "*", "//": "*", "%": "*", "@": "*"}


def occurrences(text: bytes, source: bytes) -> Iterator[int]:
    """Yield where ``text`` stands in ``source``, overlaps left out."""
    position = source.find(text)
    while position >= 0:
        yield position
        position = source.find(text, position + len(text))


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
    end = node.end_byte
    ending = node.descendant_for_byte_range(max(0, end - 1), end)
    if ending is not None and ending.type in COMMENTS:
        node = _last_that_counts(node)
    row, column = node.end_point
    # A module ends behind its last line end.
    return row - 1 if column == 0 and row > node.start_point[0] else row


def _last_that_counts(node: Node) -> Node:
    """Return the last node of a body that is no comment, below the body's end."""
    while node.type.endswith(_WITH_BODY) and node.child_count:
        index = node.child_count - 1
        child = node.child(index)
        while child is not None and child.type in COMMENTS and index > 0:
            index -= 1
            child = node.child(index)
        if child is None:
            break
        node = child
    return node


# --- the parts of a node that count, in patterns and in source ---


def parts(node: Node) -> list[Node]:
    """Return a node's children that count: no comments, no commas, a chain as a list.

    ``a or b or c`` has the parts ``a``, ``or``, ``b``, ``or``, ``c``.
    """
    kind = node.type
    if kind in _CHAINS:
        return _chain(node)
    kept = [child for child in node.children if child.type not in _SKIPPED]
    if kind in _IN_PARENTHESES:
        return [child for child in kept if child.type not in ("(", ")")]
    return kept


def _chain(node: Node) -> list[Node]:
    tail: list[Node] = []
    level = None
    while node.type in _CHAINS:
        children = [child for child in node.children if child.type not in _SKIPPED]
        operator = children[1].type
        if level not in (None, _LEVEL_OF.get(operator, operator)):
            break
        level = _LEVEL_OF.get(operator, operator)
        tail += reversed(children[1:])
        node = ungrouped(children[0])
    return [node, *reversed(tail)]


def ungrouped(node: Node) -> Node:
    """Return the expression inside grouping parentheses, or the node itself."""
    while node.type == "parenthesized_expression":
        inner = [child for child in node.named_children if child.type != "comment"]
        if len(inner) != 1:
            break
        node = inner[0]
    return node


def header(children: list[Node]) -> list[Node]:
    """Return the parts of a compound statement up to the colon of its header."""
    for index, child in enumerate(children):
        if child.type == ":":
            return children[: index + 1]
    return children
