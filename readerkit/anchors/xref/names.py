"""What a file calls things: what it defines, imports, and uses, as syntax decides it.

Each name is looked up as Python does, from the scope where it stands. What an instance
holds, and a name that a function gives a value of its own, is not for syntax to say.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from readerkit.anchors.xref.scopes import DEFINITION, IMPORT, Import, Scope, ScopeReader

_NAME = rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*+"
_CHAIN = re.compile(rb"(%b)(?>(?:\.%b)*)" % (_NAME, _NAME))
"""A name, and the attributes behind it."""
_JOINED = re.compile(rb"\b_*+[A-Za-z][A-Za-z0-9]*+(?:_\w++|(?<=[a-z])[A-Z]\w*+)")
"""A name whose words are joined, by a line or by a capital."""
_DEFINING = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
OFTEN = 7
SELF = ("self", "cls")
LOCAL = "@"
"""Opens the name of a function's own imports, which no class can have."""


class Use(NamedTuple):
    """A dotted name where it is used."""

    start: int
    end: int
    line: int
    chain: str
    """``parallel_state.get_rank``; ``self.forward``."""
    owner: str = ""
    """The class that ``self`` is of; else what binds the name, where that is not the
    module: a function with a definition of its own, or (``@...``) with an import."""


class Extent(NamedTuple):
    """A class or a function: where it is."""

    first: int
    head: int
    """The last line of its signature."""
    last: int
    name: str
    """In full."""


@dataclass(frozen=True, slots=True)
class Names:
    """What one file defines, imports and uses."""

    defined: dict[str, list[int]] = field(default_factory=dict)
    """Qualified name to the lines that define it, in order: one, unless it is
    ambiguous."""
    bases: dict[str, list[str]] = field(default_factory=dict)
    """Class to its bases, as dotted names."""
    imports: list[Import] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    """Other names of what the module imports: ``mpu = parallel_state``."""
    uses: list[Use] = field(default_factory=list)
    definition_places: list[tuple[int, int, str]] = field(default_factory=list)
    """Start and end of each name where it is defined, and that name in full."""
    fields: dict[str, int] = field(default_factory=dict)
    """What the body of a class gives a type or a value, by its name in full, and the
    line."""
    words: dict[str, int] = field(default_factory=dict)
    """Names of several words that the code says often, comments and strings too, and
    the line of the first; one in capitals, as of the environment, may be said once."""
    outline: list[Extent] = field(default_factory=list)
    """Its classes and functions, in order."""
    import_lines: set[int] = field(default_factory=set)
    """Lines on which something is imported."""
    kinds: dict[tuple[int, int], str] = field(default_factory=dict)
    """What only the grammar tells of a stretch: ``docstring``; that ``match`` is a
    ``keyword``."""


def collect_names(data: bytes) -> Names:
    """Return what a file calls things; nothing of what this Python cannot read."""
    tree = _parse(data)
    return _names(data, tree) if tree else Names()


def _parse(data: bytes) -> ast.Module | None:
    if data.count(b"\r") != data.count(b"\r\n"):
        return None  # Python would count more lines than git does
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape is no fault of who reads
        try:
            return ast.parse(data.decode())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None


def _names(data: bytes, tree: ast.Module) -> Names:
    read = ScopeReader(data, tree)
    names = Names(kinds=read.kinds, words=said_words(data))
    taken = {each.alias for _, scope, each in read.imports if scope.outer is None}
    names.aliases.update(_aliases(tree, taken))
    for start, name in read.definitions:
        if written := _CHAIN.match(data, start):
            names.definition_places.append((*written.span(1), name))
            known = names.defined.setdefault(name, [])
            line = read.line(start)
            if line not in known[-1:]:  # they come in order
                known.append(line)
    for start, scope, each in read.imports:
        where = f"{LOCAL}{scope.start}" if scope.holds(each.alias) else ""
        names.imports.append(replace(each, scope=where))
        names.import_lines.add(read.line(start))
        owner, written = _owner(each.alias, scope), _CHAIN.match(data, start)
        if written and owner is not None:
            place = (*written.span(), read.line(start))
            names.uses.append(Use(*place, written[0].decode(), owner))
    heads = {name.rpartition(".")[2] for name in names.defined}
    heads.update(each.alias for each in names.imports)
    heads.update(SELF)
    for scope in read.scopes:
        if isinstance(scope.node, _DEFINING):
            names.outline.append(_extent(scope.node, scope.name))
        if isinstance(scope.node, ast.ClassDef):
            names.bases.setdefault(scope.name, []).extend(_bases(data, read, scope))
            for member in _fields(scope.node):
                names.fields.setdefault(f"{scope.name}.{member.id}", member.lineno)
        for name in heads & scope.uses.keys():
            owner = _owner(name, scope)
            if owner is not None:
                names.uses.extend(_uses(data, read, name, scope.uses[name], owner))
    names.uses.sort()
    return names


def _extent(node: Any, name: str) -> Extent:
    head = max(node.body[0].lineno - 1, node.lineno)
    return Extent(node.lineno, head, node.end_lineno, name)


def said_words(data: bytes) -> dict[str, int]:
    """Return the names of several words that a file says often, each with its line."""
    lines: dict[bytes, list[int]] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        for word in _JOINED.findall(line):
            lines.setdefault(word, []).append(number)
    return {
        word.decode(errors="replace"): said[0]
        for word, said in lines.items()
        if len(said) >= OFTEN or word.isupper()
    }


def _fields(node: ast.ClassDef) -> Iterator[ast.Name]:
    for each in node.body:
        match each:
            case ast.AnnAssign(target=ast.Name() as name):
                yield name
            case ast.Assign(targets=[ast.Name() as name]):
                yield name


def _aliases(tree: ast.Module, taken: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield the names that a module gives once more to what it imports."""
    for each in tree.body:
        match each:
            case ast.Assign([ast.Name(alias)], ast.Name(name)) if name in taken:
                yield alias, name


def _owner(name: str, scope: Scope) -> str | None:
    """Return what has a name; None where no definition or import of this file has."""
    binding = scope.binding(name)
    if name in SELF and not (binding and binding.bound[name] & IMPORT):
        return scope.class_of() or None
    if binding is None:
        return ""
    how = binding.bound[name]
    if how == IMPORT:
        return f"{LOCAL}{binding.start}"
    return binding.name if how == DEFINITION else None


def _uses(
    data: bytes, read: ScopeReader, name: str, nodes: list[ast.Name], owner: str
) -> Iterator[Use]:
    """Yield the uses of a name, each with the attributes behind it.

    What a value is given to is no use: ``a.b = 1`` uses ``a``.
    """
    head = name.encode()
    for node in nodes:
        start = read.start(node)
        written = _CHAIN.match(data, start)
        if written is None or written[1] != head:
            continue  # a letter that Python spells in another way
        chain, end = written[0].decode(), written.end()
        if end in read.assigned:
            chain = chain.rpartition(".")[0]
            end = start + len(chain.encode())
        if chain not in SELF or owner.startswith(LOCAL):
            yield Use(start, end, node.lineno, chain, owner)


def _bases(data: bytes, read: ScopeReader, scope: Scope) -> Iterator[str]:
    """Yield the bases of a class, less those that only a function knows."""
    for base in scope.node.bases if isinstance(scope.node, ast.ClassDef) else ():
        written = _CHAIN.match(data, read.start(base))
        if not (scope.outer and written and written.end() == read.end(base)):
            continue  # no dotted name
        if scope.outer.binding(written[1].decode()) is None:
            yield written[0].decode()
