"""Which definitions a script needs: those that its entries reach, module by module.

A definition is a function, a class or a constant of a module. A method is needed where
its name is said by anything that is; so a class brings what is used of it alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from readerkit.errors import ReaderkitError

OURS = ("readerkit", "mini_impls")
"""Packages whose modules are translated; of others the runtime has what is used."""
NATIVE = {
    ("readerkit.model.language", "Told"),
    ("readerkit.model.language", "said"),
}
"""What the runtime has in its own way: text that remembers what it was made of."""
Read = Callable[[str], str]
"""Returns the source of a module by its name."""
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
_KEPT_DUNDERS = (
    *("__init__", "__post_init__", "__call__", "__getitem__", "__len__", "__bool__"),
    *("__eq__", "__lt__", "__index__", "__float__", "__format__", "__iter__"),
    *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__"),
    *("__truediv__", "__rtruediv__", "__str__"),
)


@dataclass(frozen=True, slots=True)
class Native:
    """A name of another package, or of Python itself: the runtime has it."""

    path: str


@dataclass(frozen=True, slots=True)
class Own:
    """A definition of a module that is translated."""

    module: str
    name: str


Meaning = Own | Native


@dataclass(slots=True)
class Module:
    """A module: what it defines, and what its imports mean."""

    name: str
    definitions: dict[str, Definition] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By name, the module that it comes from, and its name there; empty: all of it."""
    order: list[str] = field(default_factory=list)
    """The modules of ours that it imports, in its order."""


def trouble(module: str, node: ast.AST, what: str) -> ReaderkitError:
    """Return an error that says where the source has what is not translated."""
    line = getattr(node, "lineno", 0)
    return ReaderkitError(
        f"{module.replace('.', '/')}.py:{line}: not translated to JavaScript: {what} "
        "(readerkit/render/javascript knows a part of Python)"
    )


class ScriptProgram:
    """All modules that a script is made of, and which of their definitions it needs."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.modules: dict[str, Module] = {}
        self.needed: dict[str, dict[str, Definition]] = {}
        self.said: set[str] = set()
        """ScriptNames of attributes that what is needed says."""
        self._todo: list[tuple[str, ast.AST]] = []
        self._seen: set[tuple[str, str, str]] = set()

    def module(self, name: str) -> Module:
        """Return a module by its name; it is read once."""
        if name not in self.modules:
            found = self.modules[name] = Module(name)
            tree = ast.parse(self._read(name))
            for node in tree.body:
                _define(found, node)
                if isinstance(node, ast.ImportFrom) and _is_ours(node.module or ""):
                    found.order.append(node.module or "")
            for each in ast.walk(tree):
                _import(found, each)
        return self.modules[name]

    def meaning(self, module: str, name: str) -> Meaning | None:
        """Return what a name of a module stands for; None: one of Python's own."""
        home = self.module(module)
        if (module, name) in NATIVE:
            return Native(name)
        if name in home.definitions:
            return Own(module, name)
        if name not in home.imports:
            return None
        source, there = home.imports[name]
        if not _is_ours(source):
            return Native(f"{source}.{there}".rstrip("."))
        return self.meaning(source, there)

    def need(self, module: str, name: str) -> None:
        """Need a definition, and all that it reaches."""
        self._add(module, name)
        while self._todo:
            home, node = self._todo.pop()
            for each in walk_code(node):
                if isinstance(each, ast.Name):
                    found = self.meaning(home, each.id)
                    if isinstance(found, Own):
                        self._add(found.module, found.name)
                elif isinstance(each, ast.Attribute):
                    self._say(each.attr)

    def _add(self, module: str, name: str) -> None:
        known = self.needed.setdefault(module, {})
        if name in known:
            return
        definition = known[name] = self.module(module).definitions[name]
        if not isinstance(definition, ast.ClassDef):
            self._todo.append((module, definition))
            return
        around = (*definition.bases, *definition.decorator_list)
        self._todo += ((module, each) for each in around)
        for each in definition.body:
            self._add_member(module, name, each)

    def _add_member(self, module: str, owner: str, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef):
            key = (module, owner, node.name)
            wanted = node.name in self.said or node.name in _KEPT_DUNDERS
            if key not in self._seen and wanted:
                self._seen.add(key)
                self._todo.append((module, node))
        elif isinstance(node, ast.AnnAssign) and node.value:
            self._todo.append((module, node.value))

    def _say(self, attribute: str) -> None:
        if attribute in self.said:
            return
        self.said.add(attribute)
        for module, known in list(self.needed.items()):
            for name, node in list(known.items()):
                for each in node.body if isinstance(node, ast.ClassDef) else ():
                    self._add_member(module, name, each)

    def has(self, module: str, owner: str, method: str) -> bool:
        """Whether a method is needed."""
        return (module, owner, method) in self._seen

    def in_order(self) -> Iterator[tuple[str, list[Definition]]]:
        """Yield modules after those that they import, with what is needed of each."""
        done: set[str] = set()

        def visit(name: str) -> Iterator[str]:
            if name in done:
                return
            done.add(name)
            for other in self.modules[name].order if name in self.modules else ():
                yield from visit(other)
            yield name

        for start in sorted(self.needed):
            for name in visit(start):
                if name in self.needed:
                    wanted = {id(each) for each in self.needed[name].values()}
                    own = dict.fromkeys(self.modules[name].definitions.values())
                    yield name, [each for each in own if id(each) in wanted]


def walk_code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run: no annotation, no type that is only said."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params"):
            continue
        each = value if isinstance(value, list) else [value]
        if isinstance(node, ast.Call) and name == "args" and is_cast(node):
            each = each[1:]
        if isinstance(node, ast.Subscript) and name == "slice" and _is_type(node):
            continue
        for child in each:
            if isinstance(child, ast.AST):
                yield from walk_code(child)


def is_cast(node: ast.Call) -> bool:
    """Whether a call is one of ``typing.cast``."""
    return isinstance(node.func, ast.Name) and node.func.id == "cast"


TYPES = frozenset(
    ("list", "dict", "tuple", "set", "frozenset", "type", "deque", "Mapping")
)


def _is_type(node: ast.Subscript) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in TYPES


def _define(module: Module, node: ast.stmt) -> None:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        module.definitions[node.name] = node
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        module.definitions[node.target.id] = node
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Name):
                    module.definitions[each.id] = node


def _import(module: Module, node: ast.AST) -> None:
    if isinstance(node, ast.Import):
        for each in node.names:
            module.imports[each.asname or each.name] = (each.name, "")
    elif isinstance(node, ast.ImportFrom) and node.module:
        for each in node.names:
            module.imports[each.asname or each.name] = (node.module, each.name)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in OURS
