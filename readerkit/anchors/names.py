"""What a file calls things: what it defines, imports, and uses, as syntax decides it.

A use counts only where no enclosing function binds the same name. What an instance
holds, and what a name means after it was assigned twice, is not for syntax to say.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tree_sitter import Node

from readerkit.anchors.scan import Scan
from readerkit.anchors.source import SourceFile

# A name and the attributes behind it; ``name=`` is an argument's name or a target.
_CHAIN = re.compile(
    rb"(?<![\w.\x80-\xff])[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+(?!\s*=[^=]|[\x80-\xff])"
)
_SELF = ("self", "cls")
_MODULE = -1
_QUOTED = ("string", "docstring", "comment", "defined")
T = TypeVar("T", tuple[int, str], tuple[int, int, str])


@dataclass(frozen=True, slots=True)
class Import:
    """A name that an import binds."""

    alias: str
    module: str
    """As written: dots in front where it is relative."""
    name: str = ""
    """What is taken out of the module; empty: the module itself; ``*``: all."""


@dataclass(frozen=True, slots=True)
class Use:
    """A dotted name where it is used."""

    start: int
    end: int
    line: int
    chain: str
    """``parallel_state.get_rank``; ``self.forward``."""
    owner: str = ""
    """The class that ``self`` is of."""


@dataclass(frozen=True, slots=True)
class Names:
    """What one file defines, imports and uses."""

    defined: dict[str, list[int]] = field(default_factory=dict)
    """Qualified name to the lines that define it: one, unless it is ambiguous."""
    bases: dict[str, list[str]] = field(default_factory=dict)
    """Class to its bases, as dotted names."""
    imports: list[Import] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    definition_places: list[tuple[int, int, str]] = field(default_factory=list)
    """Start and end of the name of each class and function, and that name in full."""


@dataclass(slots=True)
class _Scope:
    start: int
    end: int
    parent: int
    kind: str
    name: str
    """Qualified; empty for a lambda."""
    bound: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)


def collect_names(source: SourceFile, found: Scan) -> Names:
    """Return what a file calls things, from a scan of it."""
    names = Names()
    lines = _LineNumbers(source.data)
    scopes = _scopes(found.scopes, names, lines)
    for (_, name), scope in _placed(found.globals, scopes):
        if scope != _MODULE:
            scopes[scope].globals.add(name)
    for (offset, name), scope in _placed(found.bound, scopes):
        if scope == _MODULE:
            names.defined.setdefault(name, [lines.of(offset)])
        else:
            scopes[scope].bound.add(name)
    for node in sorted(found.imports, key=lambda node: node.start_byte):
        names.imports.extend(_imports(node))
    heads = {name for name in names.defined if "." not in name}
    heads.update(each.alias for each in names.imports)
    heads.update(_SELF)
    for (start, end, chain), scope in _placed(
        _chains(source.data, found.colours, heads), scopes
    ):
        head = chain.partition(".")[0]
        owner = ""
        if head in _SELF:
            owner = _class_of(scope, scopes)
            if not owner or chain == head:
                continue
        elif _is_local(head, scope, scopes):
            continue
        names.uses.append(Use(start, end, lines.of(start), chain, owner))
    return names


class _LineNumbers:
    def __init__(self, data: bytes) -> None:
        self._starts = [0]
        at = data.find(b"\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = data.find(b"\n", at + 1)

    def of(self, offset: int) -> int:
        """Return the line that holds a byte."""
        return bisect_right(self._starts, offset)


def _scopes(nodes: Sequence[Node], names: Names, lines: _LineNumbers) -> list[_Scope]:
    """Return the scopes in order, and note what they define."""
    scopes: list[_Scope] = []
    open_: list[int] = []
    for node in sorted(nodes, key=lambda node: node.start_byte):
        start, end = node.start_byte, node.end_byte
        while open_ and scopes[open_[-1]].end <= start:
            open_.pop()
        parent = open_[-1] if open_ else _MODULE
        label = node.child_by_field_name("name")
        name = (label.text or b"").decode("utf-8", "replace") if label else ""
        outer = scopes[parent].name + "." if parent != _MODULE else ""
        kind = node.type
        scopes.append(_Scope(start, end, parent, kind, outer + name))
        if label is not None:
            names.defined.setdefault(outer + name, []).append(
                lines.of(label.start_byte)
            )
            names.definition_places.append(
                (label.start_byte, label.end_byte, outer + name)
            )
            if parent != _MODULE:
                scopes[parent].bound.add(name)
            if kind == "class_definition":
                names.bases[outer + name] = _bases(node)
        open_.append(len(scopes) - 1)
    return scopes


def _bases(node: Node) -> list[str]:
    listed = node.child_by_field_name("superclasses")
    return [
        (base.text or b"").decode("utf-8", "replace")
        for base in (listed.named_children if listed else ())
        if base.type in ("identifier", "attribute")
    ]


def _imports(node: Node) -> Iterator[Import]:
    module_node = node.child_by_field_name("module_name")
    module = (module_node.text or b"").decode() if module_node else ""
    for child in node.named_children:
        if child == module_node:
            continue
        if child.type == "wildcard_import":
            yield Import("", module, "*")
        elif child.type in ("dotted_name", "aliased_import"):
            label, alias = child, ""
            if child.type == "aliased_import":
                label = child.child_by_field_name("name") or child
                alias = _decoded(child.child_by_field_name("alias"))
            name = _decoded(label)
            if module_node:
                yield Import(alias or name, module, name)
            elif alias:
                yield Import(alias, name)
            else:  # import a.b binds a
                yield Import(name.partition(".")[0], name.partition(".")[0])


def _decoded(node: Node | None) -> str:
    return (node.text or b"").decode("utf-8", "replace") if node else ""


def _chains(
    data: bytes, colours: Sequence[tuple[int, int, str]], heads: set[str]
) -> list[tuple[int, int, str]]:
    """Return the dotted names outside strings and comments that begin with a head."""
    known = {head.encode() for head in heads}
    chains = []
    reached = 0
    quoted = [(s, e) for s, e, kind in colours if kind in _QUOTED]
    for start, end in [*quoted, (len(data), len(data))]:
        for match in _CHAIN.finditer(data, reached, start):
            text = match[0]
            dot = text.find(b".")
            if (text if dot < 0 else text[:dot]) in known:
                chains.append((match.start(), match.end(), text.decode()))
        reached = end
    return chains


def _placed(items: Sequence[T], scopes: Sequence[_Scope]) -> Iterator[tuple[T, int]]:
    """Yield each item, which begins with its offset, with the innermost scope."""
    starts = [scope.start for scope in scopes]
    for item in items:
        offset = item[0]
        index = bisect_right(starts, offset) - 1
        while index != _MODULE and scopes[index].end <= offset:
            index = scopes[index].parent
        yield item, index


def _is_local(name: str, scope: int, scopes: Sequence[_Scope]) -> bool:
    """Tell whether an enclosing function, or the class body at hand, binds a name."""
    innermost = scope
    while scope != _MODULE:
        here = scopes[scope]
        if name in here.globals:
            return False
        visible = here.kind != "class_definition" or scope == innermost
        if visible and name in here.bound:
            return True
        scope = here.parent
    return False


def _class_of(scope: int, scopes: Sequence[_Scope]) -> str:
    """Return the class whose method, at whatever depth, a place is in."""
    while scope != _MODULE:
        here = scopes[scope]
        if here.kind == "class_definition":
            return here.name
        scope = here.parent
    return ""
