"""Whether source is like a pattern, node by node; ``pattern`` tells the rules."""

from __future__ import annotations

from tree_sitter import Node

from readerkit.anchors.gaps import (
    bracketed_gap,
    is_any_decorator,
    is_gap,
    without_group,
)
from readerkit.anchors.tree import header, parts, ungrouped

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


def same_kind(pattern: Node, node: Node) -> bool:
    """Tell whether two nodes are the same kind of thing, whatever they hold."""
    return pattern.type == node.type or (
        pattern.type == "default_parameter" and node.type == "typed_default_parameter"
    )


def same_content(pattern: Node, node: Node, *, is_header: bool = False) -> bool:
    """Tell whether two nodes of the same kind hold the same.

    Of a header, what stands behind its colon does not count.
    """
    text = pattern.text or b""
    # The length first: a node can be most of a file.
    if node.end_byte - node.start_byte == len(text) and node.text == text:
        return True
    if not pattern.child_count or pattern.type == "string_content":
        return _same_leaf(pattern, node)
    if bracketed_gap(pattern):
        return _same_brackets(pattern, node)
    return _same_parts(pattern, node, is_header)


def _same(pattern: Node, node: Node) -> bool:
    if is_gap(pattern):
        return True
    pattern = without_group(pattern)
    if pattern.type != node.type:
        if bracketed_gap(pattern):
            return _same_brackets(pattern, node)
        node = ungrouped(node)
        if node.type == "typed_parameter" and pattern.type in _PARAMETERS:
            node = node.children[0]
        if not same_kind(pattern, node):
            return False
    return same_content(pattern, node)


def _same_leaf(pattern: Node, node: Node) -> bool:
    """Compare leaves whose texts differ.

    A word of the grammar has its text as its kind, and the kind of quotes around a
    string does not count.
    """
    if pattern.type == "string_start":
        return _prefix(pattern) == _prefix(node)
    return not pattern.is_named or pattern.type == "string_end"


def _prefix(string_start: Node) -> bytes:
    return (string_start.text or b"").rstrip(b"'\"").lower()


def _same_brackets(pattern: Node, node: Node) -> bool:
    count = node.child_count
    first, last = (node.child(0), node.child(count - 1)) if count else (None, None)
    if first is None or last is None:
        return False
    return (first.type + last.type).encode() == bracketed_gap(pattern)


def _same_parts(pattern: Node, node: Node, is_header: bool) -> bool:
    kind, wanted, nodes = pattern.type, parts(pattern), parts(node)
    if is_header and kind == "decorated_definition":
        # Only the definition itself has a header.
        if not nodes or not same_kind(wanted[-1], nodes[-1]):
            return False
        if not same_content(wanted.pop(), nodes.pop(), is_header=True):
            return False
    elif is_header:
        wanted, nodes = header(wanted), header(nodes)
    if len(wanted) != len(nodes) and kind in _ANNOTATED:
        nodes = _without_annotations(wanted, nodes)
    if kind.endswith(("_statement", "_definition")) and is_gap(wanted[-1]):
        # A body that may be anything takes the clauses behind it along.
        while len(nodes) > len(wanted) and nodes[-1].type in _TRAILING_CLAUSES:
            nodes = nodes[:-1]
    if kind in _LISTS:
        return _same_list(wanted, nodes)
    return len(wanted) == len(nodes) and all(map(_same, wanted, nodes))


def _without_annotations(wanted: list[Node], nodes: list[Node]) -> list[Node]:
    """Return the parts without the types that a pattern does not write."""
    kinds = {node.type for node in wanted}
    has_type = "type" in kinds
    kept: list[Node] = []
    for node in nodes:
        if node.type == "type" and not has_type:
            kept.pop()  # the colon or arrow before it
        elif node.type != "type_parameter" or "type_parameter" in kinds:
            kept.append(node)
    return kept


def _same_list(wanted: list[Node], nodes: list[Node]) -> bool:
    """Compare a list whose gaps take any number of nodes, as ``*`` does in a glob."""
    gaps = [is_gap(part) or is_any_decorator(part) for part in wanted]
    if True not in gaps and len(wanted) != len(nodes):
        return False
    w = n = 0
    retry: tuple[int, int] | None = None
    while n < len(nodes):
        if w < len(wanted) and gaps[w]:
            retry = (w, n)
            w += 1
        elif w < len(wanted) and _same(wanted[w], nodes[n]):
            w, n = w + 1, n + 1
        elif retry is not None:
            retry = (retry[0], retry[1] + 1)
            w, n = retry[0] + 1, retry[1]
        else:
            return False
    return all(gaps[w:])
