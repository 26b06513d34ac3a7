"""What a file calls things: what it defines, imports, and uses, as syntax decides it.

Each name is looked up as Python does, from the scope where it stands. What an instance
holds, and a name that a function gives a value of its own, is not for syntax to say.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from readerkit.anchors.source import SourceFile
from readerkit.xref.scan import Scan
from readerkit.xref.scopes import (
    DEFINITION,
    IMPORT,
    MODULE,
    VALUE,
    Scope,
    Scopes,
    alias_name,
)

_CHAIN = re.compile(
    rb"(?<![\w.\x80-\xff])([A-Za-z_\x80-\xff][\w\x80-\xff]*+)"
    rb"(?:\.[A-Za-z_\x80-\xff][\w\x80-\xff]*+)*+"
)
"""A name, and the attributes behind it."""
_GIVEN = re.compile(rb"\s*=(?!=)")
SELF = ("self", "cls")
LOCAL = "@"
"""Opens the name of a function's own imports, which no class can have."""
_QUOTED = ("string", "docstring", "comment", "defined")


@dataclass(frozen=True, slots=True)
class Import:
    """A name that an import binds."""

    alias: str
    module: str
    """As written: dots in front where it is relative."""
    name: str = ""
    """What is taken out of the module; empty: the module itself; ``*``: all."""
    scope: str = ""
    """The function or class that alone sees it; empty: the whole module."""


@dataclass(frozen=True, slots=True)
class Use:
    """A dotted name where it is used."""

    start: int
    end: int
    line: int
    chain: str
    """``parallel_state.get_rank``; ``self.forward``."""
    owner: str = ""
    """The class that ``self`` is of; else what binds the name, where that is not the
    module: a function with a definition of its own, or (``@...``) with an import."""


@dataclass(frozen=True, slots=True)
class Names:
    """What one file defines, imports and uses."""

    defined: dict[str, list[int]] = field(default_factory=dict)
    """Qualified name to the lines that define it, in order: one, unless it is
    ambiguous."""
    bases: dict[str, list[str]] = field(default_factory=dict)
    """Class to its bases, as dotted names."""
    imports: list[Import] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    definition_places: list[tuple[int, int, str]] = field(default_factory=list)
    """Start and end of each name where it is defined, and that name in full."""


def collect_names(source: SourceFile, found: Scan) -> Names:
    """Return what a file calls things, from a scan of it."""
    names = Names()
    lines = _LineNumbers(source.data)
    scopes = Scopes(found.scopes)
    for offset, name in found.globals:
        scope = scopes.at(offset)
        if scope != MODULE:
            scopes.all[scope].globals.add(name)
    stores = found.labels | _bind_values(found, scopes, names)
    _define(scopes, names)
    for start, _, name in sorted(names.definition_places):
        known = names.defined.setdefault(name, [])
        line = lines.of(start)
        if line not in known[-1:]:  # they come in order
            known.append(line)
    imported = _import_all(found, scopes, names)
    for name, bases in _bases_of(scopes):
        names.bases.setdefault(name, []).extend(bases)
    heads = {name.rpartition(".")[2] for name in names.defined}
    heads.update(each.alias for each in names.imports)
    heads.update(SELF)
    zones = [(s, e) for s, e, kind in found.colours if kind in _QUOTED]
    zones += [(n.start_byte, n.end_byte) for n in (*found.imports, *found.future)]
    chains = _chains(source.data, sorted(zones), heads, found.typed)
    for start, end, chain in sorted([*chains, *imported]):
        head = chain.partition(".")[0]
        if start in stores or chain in SELF:
            continue
        owner = _owner(head, scopes.at(start), scopes)
        if owner is not None:
            names.uses.append(Use(start, end, lines.of(start), chain, owner))
    return names


def _owner(head: str, scope: int, scopes: Scopes) -> str | None:
    """Return what has a name; None where no definition or import of this file has."""
    if head in SELF:
        return scopes.class_of(scope) or None
    binding = scopes.binding(head, scope)
    if binding == MODULE:
        return ""
    how = scopes.all[binding].bound[head]
    if how == IMPORT:
        return _own_imports(scopes.all[binding])
    return scopes.all[binding].name if how == DEFINITION else None


def _own_imports(scope: Scope) -> str:
    return f"{LOCAL}{scope.node.start_byte}"


def _bind_values(found: Scan, scopes: Scopes, names: Names) -> set[int]:
    """Note which scope gives each name a value; return where the names stand."""
    placed = [(place, scopes.at(place[0])) for place in found.bound]
    for place in found.walrus:
        placed.append((place, scopes.statement_scope(scopes.at(place[0]))))
    for node in found.scopes:
        if node.type == "type_alias_statement" and (label := alias_name(node)):
            place = (label.start_byte, _decoded(label))
            # The alias itself is a name of what is around its parameters.
            inner = scopes.at(label.start_byte)
            placed.append((place, scopes.all[inner].parent))
    stores = set()
    for (start, name), scope in placed:
        stores.add(start)
        if scope != MODULE and name not in scopes.all[scope].globals:
            scopes.all[scope].bind(name, VALUE)
        else:
            end = start + len(name.encode())
            names.definition_places.append((start, end, name))
    for start, name in found.changed:
        scope = scopes.at(start)
        if scope != MODULE and name not in scopes.all[scope].globals:
            scopes.all[scope].bind(name, VALUE)
    for start, name in found.parameters:
        stores.add(start)
        if taker := scopes.taking(start):
            taker.bind(name, VALUE)
    return stores


def _define(scopes: Scopes, names: Names) -> None:
    """Note the definitions of classes and functions, and the bases of classes."""
    for scope in scopes.all:
        if scope.label is None:
            continue
        label = scope.label
        names.definition_places.append((label.start_byte, label.end_byte, scope.name))
        around = scopes.at(scope.node.start_byte)
        if around != MODULE:
            scopes.all[around].bind(_decoded(label), DEFINITION)


def _bases_of(scopes: Scopes) -> Iterator[tuple[str, list[str]]]:
    """Yield each class with its bases, less those that only a function knows."""
    for scope in scopes.all:
        if scope.kind != "class_definition":
            continue
        around = scopes.at(scope.node.start_byte)
        yield (
            scope.name,
            [
                base
                for base in _bases(scope.node)
                if scopes.binding(base.partition(".")[0], around) == MODULE
            ],
        )


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


def _bases(node: Node) -> list[str]:
    listed = node.child_by_field_name("superclasses")
    return [
        (base.text or b"").decode("utf-8", "replace")
        for base in (listed.named_children if listed else ())
        if base.type in ("identifier", "attribute")
    ]


def _import_all(
    found: Scan, scopes: Scopes, names: Names
) -> list[tuple[int, int, str]]:
    """Note what is imported, and for whom; return where each name is bound."""
    places = []
    for node in sorted(found.imports, key=lambda node: node.start_byte):
        scope = scopes.at(node.start_byte)
        for each, place in _imports(node):
            here = scope
            if scope != MODULE and each.alias in scopes.all[scope].globals:
                here = MODULE
            if here != MODULE:
                scopes.all[here].bind(each.alias, IMPORT)
                each = replace(each, scope=_own_imports(scopes.all[here]))
            names.imports.append(each)
            if each.name != "*":
                places.append((place.start_byte, place.end_byte, _decoded(place)))
    return places


def _imports(node: Node) -> Iterator[tuple[Import, Node]]:
    """Yield what an import binds, and the node of the name that it binds."""
    module_node = node.child_by_field_name("module_name")
    module = _decoded(module_node)
    for child in node.named_children:
        if child == module_node:
            continue
        if child.type == "wildcard_import":
            yield Import("", module, "*"), child
        elif child.type in ("dotted_name", "aliased_import"):
            label, alias = child, None
            if child.type == "aliased_import":
                label = child.child_by_field_name("name") or child
                alias = child.child_by_field_name("alias")
            name = _decoded(label)
            if module_node:
                yield Import(_decoded(alias) or name, module, name), alias or label
            elif alias:
                yield Import(_decoded(alias), name), alias
            else:  # import a.b binds a
                head = name.partition(".")[0]
                yield Import(head, head), label


def _decoded(node: Node | None) -> str:
    return (node.text or b"").decode("utf-8", "replace") if node else ""


def _chains(
    data: bytes, zones: Sequence[tuple[int, int]], heads: set[str], typed: set[int]
) -> list[tuple[int, int, str]]:
    """Return the dotted names outside of ``zones`` that begin with a head.

    What a value is given to is no use: ``a.b = 1`` uses ``a``.
    """
    known = {head.encode() for head in heads}
    chains = []
    reached = 0
    for start, end in [*zones, (len(data), len(data))]:
        for match in _CHAIN.finditer(data, reached, max(reached, start)):
            if match[1] not in known:
                continue
            text = match[0]
            stop = match.end()
            if _GIVEN.match(data, stop, start) and stop not in typed:
                if text == match[1]:
                    continue
                text = text[: text.rfind(b".")]
                stop = match.start() + len(text)
            chains.append((match.start(), stop, text.decode("utf-8", "replace")))
        reached = max(reached, end)
    return chains
