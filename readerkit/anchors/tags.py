"""Definitions by the tags query of a grammar: for what we have no reader of our own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node, QueryCursor

from readerkit.anchors.grammars import tags_query
from readerkit.anchors.symbols import Symbol
from readerkit.model.code_languages import Language

_Tag = tuple[Node, str, str, Node]
"""A definition, what it is, what it is called, and where that is written."""
_CLASSES = {
    *("class", "interface", "module", "type", "struct", "enum", "union", "trait"),
    "object",
}
_FUNCTIONS = {"function", "method", "macro"}
_KINDS = {f"definition.{kind}": kind for kind in _CLASSES | _FUNCTIONS}
"""By what a query captures."""
# The query of C names what is declared; a definition is around that.
_AROUND = {"function_definition"}
_BETWEEN = {"pointer_declarator", "reference_declarator", "parenthesized_declarator"}
_HOLDERS = {
    *("declaration_list", "mod_item"),
    *("export_statement", "expression_statement", "statement_block"),
}
_GENERIC = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
_RECEIVER = re.compile(r"([A-Za-z_]\w*)\s*\)$")


def tagged_symbols(root: Node, language: Language) -> Iterator[Symbol]:
    """Yield every definition in source order, nested ones after what holds them.

    Names are joined by dots in every language: ``Server.Close`` of Go, ``Vec.push`` of
    an ``impl`` of Rust, ``ns.Class.method`` of C++, where it is defined outside, too.
    """
    found: dict[tuple[int, int, str], _Tag] = {}
    for tag in _tagged(root, language):
        node, _, name, _ = tag
        found.setdefault((node.start_byte, -node.end_byte, name), tag)
    enclosing: list[tuple[int, str]] = []
    rows = _only_definitions([found[key] for key in sorted(found)])
    for node, kind, name, label in rows:
        while enclosing and enclosing[-1][0] <= node.start_byte:
            enclosing.pop()
        prefix = f"{enclosing[-1][1]}." if enclosing else ""
        full = prefix + name
        enclosing.append((node.end_byte, full))
        if kind != "scope":
            is_class = kind in _CLASSES
            yield Symbol(full, "class" if is_class else "function", node, node, label)


def _tagged(root: Node, language: Language) -> Iterator[_Tag]:
    cursor = QueryCursor(tags_query(language))
    for _, captures in cursor.matches(root):
        names = captures.get("name", ())
        for capture, nodes in captures.items():
            if kind := _KINDS.get(capture):
                for node, name in zip(nodes, names, strict=False):
                    yield _whole(node), kind, _name(name, node), name
    for kind, field in language.scopes.items():
        for node in _of_kind(root, kind):
            if label := node.child_by_field_name(field):
                yield node, "scope", _plain(label), label


def _of_kind(root: Node, kind: str) -> Iterator[Node]:
    """Yield the nodes of one kind that stand at the top, or in what only holds them."""
    todo = [root]
    while todo:
        for child in todo.pop().named_children:
            if child.type == kind:
                yield child
            if child.type == kind or child.type in _HOLDERS:
                todo.append(child)


def _whole(node: Node) -> Node:
    """Return the definition around what a query named; its own node where none is."""
    above: Node | None = node
    while above is not None and (above is node or above.type in _BETWEEN):
        above = above.parent
    if (
        above is not None
        and above.type in _AROUND
        and node.type == "function_declarator"
    ):
        return above
    return node


def _only_definitions(
    rows: list[_Tag],
) -> list[_Tag]:
    """Leave out what is only declared where the same file defines it."""
    defined = {
        name.rpartition(".")[2] for node, _, name, _ in rows if node.type in _AROUND
    }
    return [
        (node, kind, name, label)
        for node, kind, name, label in rows
        if node.type != "function_declarator" or name.rpartition(".")[2] not in defined
    ]


def _name(label: Node, node: Node) -> str:
    above = label.parent
    while above is not None and above.type == "qualified_identifier":
        label, above = above, above.parent
    name = _plain(label)
    if node.type == "method_declaration" and (
        receiver := node.child_by_field_name("receiver")
    ):
        text = _GENERIC.sub("", (receiver.text or b"").decode("utf-8", "replace"))
        if match := _RECEIVER.search(text):
            name = f"{match[1]}.{name}"
    return name


def _plain(label: Node) -> str:
    """Return a name as anchors write it: no type arguments, dots between its parts."""
    text = (label.text or b"").decode("utf-8", "replace")
    while (shorter := _GENERIC.sub("", text)) != text:
        text = shorter
    return ".".join("".join(text.split()).strip("&*'\"").split("::")).strip(".")
