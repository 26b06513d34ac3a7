"""Whether source is like a pattern, node by node; ``pattern`` tells the rules."""

from __future__ import annotations

from functools import cached_property

from tree_sitter import Node

from readerkit.anchors.placeholders import GAP_DECORATORS, GAP_TEXTS
from readerkit.anchors.tree import header, last_row, parts, ungrouped

# Where a gap may stand for any number of nodes.
_LISTS = {
    "argument_list",
    "assert_statement",
    "binary_operator",
    "block",
    "boolean_operator",
    "case_clause",
    "class_pattern",
    "comparison_operator",
    "decorated_definition",
    "delete_statement",
    "dict_pattern",
    "dictionary",
    "expression_list",
    "future_import_statement",
    "global_statement",
    "import_from_statement",
    "import_statement",
    "lambda",
    "lambda_parameters",
    "list",
    "list_pattern",
    "match_statement",
    "nonlocal_statement",
    "parameters",
    "pattern_list",
    "raise_statement",
    "set",
    "slice",
    "subscript",
    "tuple",
    "tuple_pattern",
    "type_parameter",
    "union_pattern",
    "with_clause",
}
_ANNOTATED = {
    "assignment",
    "class_definition",
    "default_parameter",
    "function_definition",
}
_PARAMETERS = {"identifier", "list_splat_pattern", "dictionary_splat_pattern"}
_TRAILING_CLAUSES = {
    "elif_clause",
    "else_clause",
    "except_clause",
    "except_group_clause",
    "finally_clause",
}
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


def same_kind(shape: PatternNode, kind: str) -> bool:
    """Tell whether a node of this kind can be like a shape."""
    return shape.kind == kind or (
        shape.kind == "default_parameter" and kind == "typed_default_parameter"
    )


def same_content(shape: PatternNode, node: Node) -> bool:
    """Tell whether a node of the same kind holds the same."""
    # The length first: a node can be most of a file.
    size = node.end_byte - node.start_byte
    if size == len(shape.text) and node.text == shape.text:
        return True
    if shape.is_leaf:
        return _same_leaf(shape, node)
    if shape.brackets:
        return _same_brackets(shape, node)
    return _same_parts(shape, node)


def _same(shape: PatternNode, node: Node) -> bool:
    if shape.is_gap:
        return True
    kind = node.type
    if shape.kind != kind:
        if shape.brackets:
            return _same_brackets(shape, node)
        node = ungrouped(node)
        if node.type == "typed_parameter" and shape.kind in _PARAMETERS:
            node = node.children[0]
        if not same_kind(shape, node.type):
            return False
    return same_content(shape, node)


def _same_leaf(shape: PatternNode, node: Node) -> bool:
    """Compare leaves whose texts differ.

    A word of the grammar has its text as its kind, and the kind of quotes around a
    string does not count.
    """
    if shape.kind == "string_start":
        return _prefix(shape.text) == _prefix(node.text or b"")
    return not shape.node.is_named or shape.kind == "string_end"


def _prefix(string_start: bytes) -> bytes:
    return string_start.rstrip(b"'\"").lower()


def _same_brackets(shape: PatternNode, node: Node) -> bool:
    count = node.child_count
    first, last = (node.child(0), node.child(count - 1)) if count else (None, None)
    if first is None or last is None:
        return False
    return (first.type + last.type).encode() == shape.brackets


def _same_parts(shape: PatternNode, node: Node) -> bool:
    kind, shapes, nodes = shape.kind, shape.parts, shape.parts_of(node)
    if len(shapes) != len(nodes) and kind in _ANNOTATED:
        nodes = _without_annotations(shape, nodes)
    if shapes[-1].is_gap and kind.endswith(("_statement", "_definition")):
        # A body that may be anything takes the clauses behind it along.
        while len(nodes) > len(shapes) and nodes[-1].type in _TRAILING_CLAUSES:
            nodes = nodes[:-1]
    if kind in _LISTS and True in shape.gaps:
        return _same_list(shape, nodes)
    return len(shapes) == len(nodes) and all(map(_same, shapes, nodes))


def _without_annotations(shape: PatternNode, nodes: list[Node]) -> list[Node]:
    """Return the parts without the types that a pattern does not write."""
    has_type = "type" in shape.part_kinds
    kept: list[Node] = []
    for node in nodes:
        if node.type == "type" and not has_type:
            kept.pop()  # the colon or arrow before it
        elif node.type != "type_parameter" or "type_parameter" in shape.part_kinds:
            kept.append(node)
    return kept


def _same_list(shape: PatternNode, nodes: list[Node]) -> bool:
    """Compare a list whose gaps take any number of nodes, as ``*`` does in a glob."""
    shapes, gaps = shape.parts, shape.gaps
    s = n = 0
    retry: tuple[int, int] | None = None
    while n < len(nodes):
        if s < len(shapes) and gaps[s]:
            retry = (s, n)
            s += 1
        elif s < len(shapes) and _same(shapes[s], nodes[n]):
            s, n = s + 1, n + 1
        elif retry is not None:
            retry = (retry[0], retry[1] + 1)
            s, n = retry[0] + 1, retry[1]
        else:
            return False
    return all(gaps[s:])
