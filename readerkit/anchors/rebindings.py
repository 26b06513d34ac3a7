"""What else than a plain assignment gives a name of Python another value in a block."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

_PATTERNS = {
    *("pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern"),
    *("as_pattern_target", "tuple", "list", "expression_list"),
}
_DEFINITIONS = {"function_definition", "class_definition"}
_APART = {*_DEFINITIONS, "lambda"}
# Of these the parts always run that are entered, or the rest does not either.
_ENTERED = {"with_statement", "try_statement", "finally_clause"}


def rebound(name: str, block: Node) -> Iterator[Node]:
    """Yield what gives a name of a block another value, whatever a condition says.

    Branches, loops and handlers are conditions: what they set was another by default.
    A plain assignment counts only inside of a ``with`` or a ``try``.
    """
    wanted, todo = name.encode(), [(block, True)]
    while todo:
        above, is_own = todo.pop()
        for node in above.named_children:
            if node.type == "block" and above.type in _ENTERED:
                todo.append((node, False))
            elif node.type in _ENTERED:
                todo.append((node, False))
                yield from _bound(wanted, node, is_own=False)
            else:
                yield from _bound(wanted, node, is_own=is_own)


def _bound(wanted: bytes, statement: Node, *, is_own: bool) -> Iterator[Node]:
    """Yield a statement for each time that it binds a name."""
    kind = statement.type
    if kind == "decorated_definition":
        statement = statement.named_children[-1]
        kind = statement.type
    if kind in _DEFINITIONS:
        label = statement.child_by_field_name("name")
        targets = [label] if label else []
    elif kind in ("import_statement", "import_from_statement"):
        targets = [*_imported(statement)]
    elif kind == "for_statement":
        left = statement.child_by_field_name("left")
        targets = [left] if left else []
    elif kind == "with_statement":
        targets = [*_below(statement.named_children[0], "as_pattern_target")]
    elif kind == "delete_statement":
        targets = [*statement.named_children]
    elif kind == "expression_statement":
        targets = [*_given(statement, is_own=is_own)]
    else:
        targets = []
    for target in targets:
        if wanted in _names(target):
            yield statement


def _imported(statement: Node) -> Iterator[Node]:
    for each in statement.children_by_field_name("name"):
        alias = each.child_by_field_name("alias")
        if alias is not None:
            yield alias
        elif each.named_children:
            yield each.named_children[0]  # import a.b binds a


def _given(statement: Node, *, is_own: bool) -> Iterator[Node]:
    """Yield the targets of assignments that are no plain ones, or of all."""
    for node in statement.named_children:
        each: Node | None = node
        while each is not None and each.type == "assignment":
            left = each.child_by_field_name("left")
            if left is not None and not (is_own and left.type == "identifier"):
                yield left
            each = each.child_by_field_name("right")
        if node.type == "augmented_assignment":
            left = node.child_by_field_name("left")
            if left is not None:
                yield left
        if b":=" in (node.text or b""):
            for walrus in _below(node, "named_expression"):
                yield walrus.named_children[0]


def _below(node: Node, kind: str) -> Iterator[Node]:
    """Yield the nodes of a kind, those of inner definitions left out."""
    todo = [node]
    while todo:
        each = todo.pop()
        if each.type == kind:
            yield each
        if each.type not in _APART:
            todo += each.named_children


def _names(target: Node) -> Iterator[bytes]:
    """Yield the names that a target binds; an attribute of one is none."""
    if target.type == "identifier":
        yield target.text or b""
    elif target.type in _PATTERNS:
        for each in target.named_children:
            yield from _names(each)
