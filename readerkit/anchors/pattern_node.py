"""A node of a pattern, and what comparing wants to know of it."""

from __future__ import annotations

from functools import cached_property

from tree_sitter import Node

from readerkit.anchors.placeholders import GAP_DECORATORS, GAP_TEXTS
from readerkit.anchors.tree import header, last_row, parts, ungrouped

_BRACKETS = {b"()", b"[]", b"{}"}
_ABSENT = b" \t\r\n,"


class PatternNode:
    """A node of a pattern; nothing is looked up before it is asked for, or twice."""

    def __init__(self, node: Node) -> None:
        if node.type == "parenthesized_expression":
            inner = ungrouped(node)
            node = node if inner.text in GAP_TEXTS else inner
        self.node = node
        self.kind = node.type
        self.text = node.text or b""
        self.is_gap = self.text in GAP_TEXTS
        """Whether it, or all that it holds, is a gap."""
        self.is_leaf = not node.child_count or self.kind == "string_content"
        """Whether its text is all there is to compare."""
        self.brackets = _brackets_of_gap(node, self.text)
        """Both brackets of ``(...)``, ``[...]`` or ``{...}``; else nothing."""

    @cached_property
    def parts(self) -> list[PatternNode]:
        """The shapes of what counts in it."""
        return [PatternNode(part) for part in parts(self.node)]

    def parts_of(self, node: Node) -> list[Node]:
        """Return the children of a source node that are matched against the parts."""
        return parts(node)

    def last_row_of(self, node: Node) -> int:
        """Return the row where a match ends, counted from 0."""
        return last_row(node)

    @property
    def gaps(self) -> list[bool]:
        """Of each part, whether it is a gap in a list."""
        return [part.is_gap or part.text in GAP_DECORATORS for part in self.parts]

    @property
    def part_kinds(self) -> set[str]:
        """The kinds of the parts."""
        return {part.kind for part in self.parts}


def _brackets_of_gap(node: Node, text: bytes) -> bytes:
    brackets = text[:1] + text[-1:]
    if brackets not in _BRACKETS or text[1:-1].strip(_ABSENT) not in GAP_TEXTS:
        return b""
    first = node.child(0)
    is_wrapper = first is None or first.child_count
    return b"" if is_wrapper else brackets


class Header(PatternNode):
    """The lines of a compound statement up to its colon, decorators included."""

    @cached_property
    def parts(self) -> list[PatternNode]:
        """The shapes of what counts in it."""
        *others, last = self.parts_of(self.node)
        is_decorated = self.kind == "decorated_definition"
        return [
            *map(PatternNode, others),
            (Header if is_decorated else PatternNode)(last),
        ]

    def parts_of(self, node: Node) -> list[Node]:
        """Return the children of a source node that are matched against the parts."""
        found = parts(node)
        return found if self.kind == "decorated_definition" else header(found)

    def last_row_of(self, node: Node) -> int:
        """Return the row of a match's colon, counted from 0."""
        if self.kind == "decorated_definition":
            node = parts(node)[-1]
        return header(parts(node))[-1].end_point[0]
