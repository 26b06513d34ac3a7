"""Which scope a place in a file belongs to, and which scope binds a name there.

Python's own rules: a default, an annotation, a base class and the first iterable of a
comprehension belong to what is around them; a class's names end at its methods.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

MODULE = -1

VALUE, IMPORT, DEFINITION = 1, 2, 4
"""How a name is bound: combined where it is bound in more than one way."""

_CLASS, _FUNCTION = "class_definition", "function_definition"
_ALIAS, _LAMBDA = "type_alias_statement", "lambda"
_AROUND = "around"  # the part of a comprehension that belongs to what is around it
# Which of two that begin and end at the same bytes is the outer one.
_RANK = {_FUNCTION: 0, _CLASS: 0, _LAMBDA: 0, _ALIAS: 1, _AROUND: 2}
_COMPREHENSION = 3
_TAKE = (_FUNCTION, _LAMBDA)


@dataclass(slots=True)
class Scope:
    """What has names of its own: a function, a class, a comprehension, ..."""

    node: Node
    kind: str
    """Of the syntax tree; ``type_parameter`` where only types are named."""
    parent: int = MODULE
    name: str = ""
    """Qualified; of a scope without a name the one around it."""
    label: Node | None = None
    """Where a definition has its name."""
    bound: dict[str, int] = field(default_factory=dict)
    globals: set[str] = field(default_factory=set)

    def bind(self, name: str, how: int) -> None:
        """Note that a name is bound here."""
        self.bound[name] = self.bound.get(name, 0) | how


class Scopes:
    """The scopes of a file, in order, and where each begins and ends."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.all: list[Scope] = []
        self._parameters: list[tuple[int, int, int]] = []
        regions = sorted(
            (
                (start, -end, _RANK.get(kind, _COMPREHENSION), kind, index)
                for node in nodes
                for start, end, kind, index in self._opened(node)
            ),
            key=lambda region: region[:3],
        )
        self._parameters.sort()
        self._starts = [start for start, *_ in regions]
        self._ends = [-end for _, end, *_ in regions]
        self._outer: list[int] = []
        self._scope: list[int] = []
        open_: list[int] = []
        for at, (start, _, _, kind, index) in enumerate(regions):
            while open_ and self._ends[open_[-1]] <= start:
                open_.pop()
            outer = open_[-1] if open_ else MODULE
            around = self._scope[outer] if open_ else MODULE
            if kind == _AROUND:
                index = self.all[index].parent
            else:
                self._place(self.all[index], around)
            self._outer.append(outer)
            self._scope.append(index)
            open_.append(at)

    def at(self, offset: int) -> int:
        """Return the innermost scope at a byte."""
        region = bisect_right(self._starts, offset) - 1
        while region != MODULE and self._ends[region] <= offset:
            region = self._outer[region]
        return self._scope[region] if region != MODULE else MODULE

    def taking(self, offset: int) -> Scope | None:
        """Return the function or lambda among whose parameters a byte is."""
        index = bisect_right(self._parameters, (offset + 1,)) - 1
        while index >= 0 and self._parameters[index][1] <= offset:
            index -= 1
        return self.all[self._parameters[index][2]] if index >= 0 else None

    def binding(self, name: str, scope: int) -> int:
        """Return the scope that binds a name as it is seen from a scope."""
        innermost = scope
        while scope != MODULE:
            here = self.all[scope]
            if name in here.globals:
                return MODULE
            visible = here.kind != _CLASS or scope == innermost
            if visible and name in here.bound:
                return scope
            scope = here.parent
        return MODULE

    def class_of(self, scope: int) -> str:
        """Return the class whose method, at whatever depth, a scope is in."""
        while scope != MODULE:
            here = self.all[scope]
            if here.kind == _CLASS:
                return here.name
            scope = here.parent
        return ""

    def statement_scope(self, scope: int) -> int:
        """Return the scope that ``:=`` binds in: past comprehensions."""
        while scope != MODULE and self.all[scope].kind not in _RANK:
            scope = self.all[scope].parent
        return scope

    def _place(self, scope: Scope, around: int) -> None:
        scope.parent = around
        outer = self.all[around].name if around != MODULE else ""
        own = _text(scope.label) if scope.label else ""
        scope.name = f"{outer}.{own}" if outer and own else outer or own

    def _opened(self, node: Node) -> Iterator[tuple[int, int, str, int]]:
        """Yield where each scope that a node opens begins and ends."""
        kind = node.type
        start, end = node.start_byte, node.end_byte
        if kind in (_FUNCTION, _CLASS):
            types = node.child_by_field_name("type_parameters")
            if types:
                yield types.start_byte, end, _ALIAS, self._add(node, "type_parameter")
                for name in _type_names(types):
                    self.all[-1].bind(name, VALUE)
            body = node.child_by_field_name("body")
            label = node.child_by_field_name("name")
            begin = body.start_byte if body else start
            yield begin, end, kind, self._add(node, kind, label)
        elif kind == _LAMBDA:
            body = node.child_by_field_name("body")
            yield body.start_byte if body else start, end, kind, self._add(node, kind)
        elif kind == _ALIAS:
            yield start, end, kind, self._add(node, "type_parameter")
            for name in _type_names(_alias_types(node)):
                self.all[-1].bind(name, VALUE)
        else:
            index = self._add(node, kind)
            yield start, end, kind, index
            loop = next((c for c in node.children if c.type == "for_in_clause"), None)
            source = loop.child_by_field_name("right") if loop else None
            if source:
                yield source.start_byte, source.end_byte, _AROUND, index

    def _add(self, node: Node, kind: str, label: Node | None = None) -> int:
        index = len(self.all)
        self.all.append(Scope(node, kind, label=label))
        taken = node.child_by_field_name("parameters") if kind in _TAKE else None
        if taken:
            self._parameters.append((taken.start_byte, taken.end_byte, index))
        return index


def alias_name(node: Node) -> Node | None:
    """Return the name that ``type X[T] = ...`` gives."""
    inner = node.child_by_field_name("left")
    while inner and inner.type != "identifier":
        inner = inner.named_child(0)
    return inner


def _alias_types(node: Node) -> Node | None:
    left = node.child_by_field_name("left")
    inner = left.named_child(0) if left else None
    return inner.named_child(1) if inner and inner.type == "generic_type" else None


def _type_names(types: Node | None) -> Iterator[str]:
    for each in types.named_children if types else ():
        inner: Node | None = each
        while inner and inner.type != "identifier":
            inner = inner.named_child(0)
        if inner:
            yield _text(inner)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
