"""The statements among some lines, and what each does: no line is left without one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tree_sitter import Node

from readerkit.anchors.source import SourceFile
from readerkit.anchors.tree import last_row, ungrouped
from readerkit.model.statement import Deed, Statement

MAX_NAME = 60
"""Characters of a name that is told; of a longer one its last part."""
_HEADS: dict[str, Deed] = {
    "if_statement": "condition",
    "elif_clause": "condition",
    "while_statement": "repeats",
    "for_statement": "loop",
    "with_statement": "context",
    "try_statement": "branch",
    "match_statement": "branch",
    "function_definition": "defines",
    "class_definition": "defines",
}
_SIMPLE: dict[str, Deed] = {
    "return_statement": "returns",
    "raise_statement": "raises",
    "assert_statement": "asserts",
    "import_statement": "imports",
    "import_from_statement": "imports",
    "future_import_statement": "imports",
    "delete_statement": "deletes",
    "pass_statement": "passes",
    "continue_statement": "continues",
    "break_statement": "breaks",
    "global_statement": "declares",
    "nonlocal_statement": "declares",
}
MAX_NAMES = 3
"""That a statement is told by."""


def statements(source: SourceFile, first: int, last: int) -> list[Statement]:
    """Return what stands in these lines, in order, each line in one of them."""
    found = list[Statement]()
    free = first
    for each in _below(source.root, first, last):
        start, end = max(each.first, free), min(each.last, last)
        if end < start:
            continue
        found += _blank(free, start - 1)
        if each.does == "comment" and found and found[-1].does == "comment":
            start = found.pop().first  # one remark, on several lines
        found.append(Statement(start, end, each.does, each.name, each.by))
        free = end + 1
    return [*found, *_blank(free, last)]


def _blank(first: int, last: int) -> Iterable[Statement]:
    return [Statement(first, last, "blank")] if first <= last else []


def _below(node: Node, first: int, last: int) -> Iterator[Statement]:
    """Yield the statements below a node that touch some lines, in their order."""
    for child in node.named_children:
        if child.end_point[0] + 1 < first:
            continue
        if child.start_point[0] + 1 > last:
            return
        if child.type in ("block", "decorated_definition", "decorator"):
            if child.type == "decorator":
                yield _of(child, "decorates", _read([child]))
            else:
                yield from _below(child, first, last)
        elif (
            child.type in _HEADS
            or child.type.endswith("_clause")
            or child.type in ("try_statement", "match_statement")
        ):
            yield _head(child)
            yield from _below(child, first, last)
        elif child.type == "comment":
            yield _of(child, "comment")
        elif child.type == "expression_statement":
            yield _expression(child)
        elif child.type.endswith("_statement"):
            does = _SIMPLE.get(child.type, "other")
            values = [each for each in child.named_children if each.type != "comment"]
            by = _callee(values[0]) if values and does == "returns" else ""
            named = _read(values) if does not in ("returns", "imports") else ""
            yield _of(child, does, named, by)


def _of(node: Node, does: Deed, name: str = "", by: str = "") -> Statement:
    return Statement(node.start_point[0] + 1, last_row(node) + 1, does, name, by)


def _head(node: Node) -> Statement:
    """Return a compound statement up to the colon of its head."""
    colon = next((each for each in node.children if each.type == ":"), node)
    name = node.child_by_field_name("name")
    told = _name(name) if name is not None and "definition" in node.type else ""
    if "definition" not in node.type:
        told = _read(_asked(node))
    does = _HEADS.get(node.type, "branch")
    return Statement(node.start_point[0] + 1, colon.end_point[0] + 1, does, told)


def _expression(node: Node) -> Statement:
    inner = [each for each in node.named_children if each.type != "comment"]
    if len(inner) != 1:
        return _of(node, "other")
    [value] = inner
    if value.type in ("string", "concatenated_string"):
        return _of(node, "docstring")
    if value.type in ("assignment", "augmented_assignment"):
        left, right = (value.child_by_field_name(side) for side in ("left", "right"))
        does: Deed = "assigns" if value.type == "assignment" else "changes"
        named = _name(left) if left is not None else ""
        if right is None:
            return _of(node, "declares", named)
        return _of(node, does, named, _callee(right) if right is not None else "")
    if by := _callee(value):
        return _of(node, "calls", by=by)
    return _of(node, "other")


def _callee(node: Node) -> str:
    """Return what is called, where a value is a call; nothing of another one."""
    value = ungrouped(node)
    called = value.child_by_field_name("function") if value.type == "call" else None
    return "" if called is None else _name(called)


def _asked(head: Node) -> list[Node]:
    """Return what a compound statement asks of, goes through or enters."""
    field = "right" if head.type == "for_statement" else "condition"
    asked = head.child_by_field_name(field)
    if asked is not None:
        return [asked]
    return [each for each in head.children if each.type == "with_clause"]


def _read(nodes: Iterable[Node]) -> str:
    """Return the first names that stand in some nodes, each once."""
    found = dict.fromkeys(filter(None, (n for each in nodes for n in _names(each))))
    return ", ".join([*found][:MAX_NAMES])


def _names(node: Node) -> Iterator[str]:
    if node.type in ("identifier", "attribute"):
        yield _name(node)
    elif node.type == "keyword_argument":
        value = node.child_by_field_name("value")
        yield from _names(value) if value is not None else ()
    elif node.type != "string":
        for each in node.named_children:
            yield from _names(each)


def _name(node: Node) -> str:
    """Return a name as it stands, if it is one: `self.grad_data`, `a, b`."""
    text = " ".join((node.text or b"").decode("utf-8", "replace").split())
    if len(text) <= MAX_NAME and "{" not in text and "`" not in text:
        return text
    last = node.child_by_field_name("attribute") if node.type == "attribute" else None
    return "" if last is None else _name(last)
