"""Under which conditions a place is reached: branches around it, and exits before it.

A condition counts where it stands in the same definition: of an ``if``, ``elif``,
``while`` or ``assert``, of a conditional expression or a comprehension, of an operand
behind ``and`` or ``or``; and of an earlier branch that always leaves (``return``,
``raise``, ``continue``, ``break``; out of a ``with`` no ``raise``, which that may
swallow). What is assigned between is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from readerkit.anchors.code_search import Found, found_at, scopes_of
from readerkit.anchors.source import SourceFile
from readerkit.anchors.tree import ungrouped
from readerkit.model.code_languages import COMMENTS

Fact = tuple[Node, bool]
"""A condition, and whether it was true."""

_JUMPS = frozenset({"return_statement", "continue_statement", "break_statement"})
_LEAVES = _JUMPS | {"raise_statement"}
_COMPREHENSIONS = {
    *("list_comprehension", "set_comprehension", "dictionary_comprehension"),
    "generator_expression",
}
_BLOCKS = {"block", "module"}
_BRANCHES = {
    *("elif_clause", "else_clause", "case_clause"),
    *("except_clause", "except_group_clause"),
}


def facts_at(node: Node, scope: Node) -> Iterator[Fact]:
    """Yield what is known to be true or false where a node stands, the nearest first.

    ``scope`` ends the search: conditions around it do not count.
    """
    while node != scope and node.parent is not None:
        above = node.parent
        yield from _around(above, node)
        if above.type in _BLOCKS:
            yield from _before(above, node.start_byte)
        node = above


def never_both(one: Node, other: Node) -> bool:
    """Tell whether two places stand in branches of which one alone is taken.

    Those are of an ``if``, of a conditional expression, the cases of a ``match`` and
    what handles the errors of a ``try``, beside its ``else``.
    """
    here = dict(_branches_around(one))
    for fork, (number, is_body) in _branches_around(other):
        mine, is_my_body = here.get(fork, (number, is_body))
        # What a later branch tests is reached past earlier tests, not past a body.
        if mine != number and (is_my_body if mine < number else is_body):
            return True
    return False


def _branches_around(node: Node) -> Iterator[tuple[int, tuple[int, bool]]]:
    """Yield each fork around a node: which branch it is in, and whether in its body."""
    inner: Node | None = None
    while node.parent is not None:
        above = node.parent
        if above.type == "conditional_expression":
            parts = [n for n in above.named_children if n.type not in COMMENTS]
            if node != parts[1]:
                yield above.id, (node.start_byte, True)
        elif node.type in _BRANCHES or node == _field(above, "consequence"):
            whole = inner or node  # a branch that is meant itself is what it tests
            is_body = "block" in (node.type, whole.type) or whole.type == "else_clause"
            yield above.id, (node.start_byte, is_body)
        inner, node = node, above


def conditions_in(source: SourceFile, symbol: str | None) -> Iterator[Found]:
    """Yield what may be true or false in a definition of Python, or in a file.

    Raises:
        AnchorError: no such definition.
    """
    todo = scopes_of(symbol, source) if source.language.is_python else []
    while todo:
        node = todo.pop()
        todo += reversed(node.named_children)
        if tested := _field(node, "condition"):
            facts = [*_implied(tested, truth=True), *_implied(tested, truth=False)]
            yield from (found_at(fact, source) for fact, _ in facts)


def _around(above: Node, node: Node) -> Iterator[Fact]:
    """Yield what being in this part of a node says."""
    kind, condition = above.type, above.child_by_field_name("condition")
    if kind in ("if_statement", "elif_clause", "while_statement") and condition:
        body = above.child_by_field_name(
            "body" if kind == "while_statement" else "consequence"
        )
        if node == body:
            yield from _implied(condition, truth=True)
        elif node != condition:  # a later branch
            yield from _implied(condition, truth=False)
            for clause in above.children_by_field_name("alternative"):
                tested = clause.child_by_field_name("condition")
                if clause.start_byte < node.start_byte and tested:
                    yield from _implied(tested, truth=False)
    elif kind == "conditional_expression":
        parts = [n for n in above.named_children if n.type not in COMMENTS]
        chosen, tested, otherwise = parts[:3]
        if node in (chosen, otherwise):
            yield from _implied(tested, truth=node == chosen)
    elif kind == "boolean_operator" and _field(above, "right") == node:
        left, operator = _field(above, "left"), _field(above, "operator")
        if left and operator:
            yield from _implied(left, truth=operator.type == "and")
    elif kind in _COMPREHENSIONS:
        # The body comes last, whatever stands before it in the text.
        is_body = node == _field(above, "body")
        for clause in above.named_children:
            is_before = is_body or clause.end_byte <= node.start_byte
            if clause.type == "if_clause" and is_before:
                yield from _implied(clause.named_children[0], truth=True)
    elif kind == "case_clause" and node == _field(above, "consequence"):
        guard = _field(above, "guard")
        if guard is not None:
            yield from _implied(guard.named_children[0], truth=True)


def _before(
    block: Node, until: int, leaves: frozenset[str] = _LEAVES
) -> Iterator[Fact]:
    """Yield what the statements that end before a byte say, if that is reached."""
    for statement in reversed(block.named_children):
        if statement.end_byte > until:
            continue
        if statement.type == "assert_statement" and leaves is _LEAVES:
            yield from _implied(statement.named_children[0], truth=True)
        elif statement.type == "if_statement":
            yield from _left_over(statement, leaves)
        elif statement.type == "with_statement":
            yield from _before(_body(statement), until, _JUMPS)


def _left_over(branch: Node, leaves: frozenset[str]) -> Iterator[Fact]:
    """Yield what is known behind an ``if``: a branch that always leaves was not it."""
    tested, body = _field(branch, "condition"), _field(branch, "consequence")
    if tested is None or body is None:
        return
    clauses = branch.children_by_field_name("alternative")
    if _leaves(body, leaves):
        yield from _implied(tested, truth=False)
        for clause in clauses:
            condition = _field(clause, "condition")
            if condition is None or not _leaves(_body(clause), leaves):
                return
            yield from _implied(condition, truth=False)
    elif [each.type for each in clauses] == ["else_clause"] and _leaves(
        _body(clauses[0]), leaves
    ):
        yield from _implied(tested, truth=True)


def _body(clause: Node) -> Node:
    return _field(clause, "consequence") or _field(clause, "body") or clause


def _leaves(block: Node, leaves: frozenset[str]) -> bool:
    """Tell whether nothing comes behind a block, whatever happens in it."""
    last = next(
        (n for n in reversed(block.named_children) if n.type != "comment"), None
    )
    if last is None:
        return False
    if last.type in leaves:
        return True
    if last.type == "with_statement":
        return _leaves(_body(last), _JUMPS)
    clauses = last.children_by_field_name("alternative")
    return (
        last.type == "if_statement"
        and bool(clauses)
        and clauses[-1].type == "else_clause"
        and _leaves(_body(last), leaves)
        and all(_leaves(_body(clause), leaves) for clause in clauses)
    )


def _implied(condition: Node, *, truth: bool) -> Iterator[Fact]:
    """Yield a condition and what follows from it: parts of ``and``, ``or``, ``not``."""
    node = ungrouped(condition)
    yield node, truth
    if node.type == "not_operator":
        operand = _field(node, "argument")
        if operand is not None:
            yield from _implied(operand, truth=not truth)
    elif node.type == "boolean_operator":
        operator = _field(node, "operator")
        if operator is not None and (operator.type == "and") == truth:
            for side in ("left", "right"):
                part = _field(node, side)
                if part is not None:
                    yield from _implied(part, truth=truth)


def _field(node: Node, name: str) -> Node | None:
    return node.child_by_field_name(name)
