"""The scopes of a file, and what stands in each: from Python's own syntax tree.

Python's own rules: a default, an annotation, a base class and the first iterable of a
comprehension belong to what is around them; a class's names end at its methods.
``symtable`` knows as much of each name, but not where it stands: making it and finding
each of its tables again takes longer than to read the tree.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

VALUE, IMPORT, DEFINITION = 1, 2, 4
"""How a name is bound: combined where it is bound in more than one way."""
NOWHERE = -1

_HEADER = re.compile(rb"(?:async[\s\\]+)?(?:def|class)[\s\\]+")
_AS = re.compile(rb"\bas[\s\\]+")
_NO_NODES = ("arg", "attr", "conversion", "ctx", "is_async", "kind", "op", "ops")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


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


@dataclass(slots=True, eq=False)
class Scope:
    """What has names of its own: a module, a class, a function, a comprehension, ..."""

    node: ast.AST
    outer: Scope | None
    """None of the module."""
    name: str = ""
    """Qualified; of a scope without a name the one around it."""
    start: int = 0
    bound: dict[str, int] = field(default_factory=dict)
    globals: set[str] = field(default_factory=set)
    binds: list[tuple[str, int, int]] = field(default_factory=list)
    """Names, how each is bound here, and where it stands."""
    uses: dict[str, list[ast.Name]] = field(default_factory=dict)

    def holds(self, name: str) -> bool:
        """Whether a name that is bound here is not the module's."""
        return self.outer is not None and name not in self.globals

    def binding(self, name: str) -> Scope | None:
        """Return the scope that binds a name as it is seen here, if not the module."""
        scope: Scope | None = self
        while scope and name not in scope.globals:
            is_seen = scope is self or not isinstance(scope.node, ast.ClassDef)
            if is_seen and name in scope.bound:
                return scope
            scope = scope.outer
        return None

    def class_of(self) -> str:
        """Return the class whose method, at whatever depth, this is in."""
        scope: Scope | None = self
        while scope and not isinstance(scope.node, ast.ClassDef):
            scope = scope.outer
        return scope.name if scope else ""


class ScopeReader:
    """Reads a tree once, without recursion: one scope after another."""

    def __init__(self, data: bytes, tree: ast.Module) -> None:
        self._data = data
        self._lines = [0]
        while at := data.find(b"\n", self._lines[-1]) + 1:
            self._lines.append(at)
        self.scopes: list[Scope] = []
        self.imports: list[tuple[int, Scope, Import]] = []
        """Where the name stands that each import binds, and in which scope."""
        self.definitions: list[tuple[int, str]] = []
        """Where a class, a function, or a value of the module has its name, and that
        name in full."""
        self.assigned: set[int] = set()
        """Where an attribute ends that is given a value."""
        self.kinds: dict[tuple[int, int], str] = {}
        """What only the grammar tells: docstrings, and the keywords match and case."""
        self._waiting: list[tuple[Scope, list[Any]]] = []
        self._open(tree, None, [*tree.body])
        while self._waiting:
            self._read(*self._waiting.pop())
        self.scopes.sort(key=lambda scope: scope.start)
        for scope in self.scopes:
            self._bind(scope)
        self.definitions.sort()
        self.imports.sort(key=lambda each: each[0])

    def start(self, node: Any) -> int:
        """Return the byte where a node begins."""
        offset: int = self._lines[node.lineno - 1] + node.col_offset
        return offset

    def end(self, node: Any) -> int:
        """Return the byte after a node."""
        offset: int = self._lines[node.end_lineno - 1] + node.end_col_offset
        return offset

    def line(self, offset: int) -> int:
        """Return the line that holds a byte."""
        return bisect_right(self._lines, offset)

    def _open(
        self, node: ast.AST, outer: Scope | None, nodes: list[Any], name: str = ""
    ) -> Scope:
        start = self.start(node) if outer else 0
        scope = Scope(node, outer, name or (outer.name if outer else ""), start)
        self.scopes.append(scope)
        self._waiting.append((scope, nodes))
        return scope

    def _read(self, scope: Scope, nodes: list[Any]) -> None:
        uses = scope.uses
        while nodes:
            node = nodes.pop()
            kind = node.__class__
            if kind is ast.Name:
                if node.ctx.__class__ is ast.Store:
                    scope.binds.append((node.id, VALUE, self.start(node)))
                elif node.id in uses:
                    uses[node.id].append(node)
                else:
                    uses[node.id] = [node]
            elif kind is ast.Attribute:
                if node.ctx.__class__ is ast.Store:
                    self.assigned.add(self.end(node))
                nodes.append(node.value)
            elif kind in _READ:
                nodes += _READ[kind](self, node, scope)
            elif kind in _FIELDS:
                for name in _FIELDS[kind]:
                    value = getattr(node, name)
                    if value.__class__ is list:
                        nodes += value
                    elif value is not None:
                        nodes.append(value)

    def _bind(self, scope: Scope) -> None:
        for name, how, start in scope.binds:
            if scope.holds(name):
                scope.bound[name] = scope.bound.get(name, 0) | how
            elif how == VALUE and start != NOWHERE:
                self.definitions.append((start, name))

    # What opens a scope; each returns what of it belongs to the scope around.

    def _read_FunctionDef(self, node: Any, scope: Scope) -> Iterable[Any]:
        takes, values = _arguments(node.args)
        typed = [*(each.annotation for each in takes), node.returns]
        outer, typed = self._parametrized(node, scope, typed)
        self._open(node, outer, [*takes, *node.body], self._define(node, scope))
        return [*node.decorator_list, *values, *typed]

    _read_AsyncFunctionDef = _read_FunctionDef

    def _read_ClassDef(self, node: Any, scope: Scope) -> Iterable[Any]:
        bases = [*node.bases, *node.keywords]
        outer, bases = self._parametrized(node, scope, bases)
        self._open(node, outer, [*node.body], self._define(node, scope))
        return [*node.decorator_list, *bases]

    def _define(self, node: Any, scope: Scope) -> str:
        start = self.start(node)
        header = _HEADER.match(self._data, start)
        name = f"{scope.name}.{node.name}" if scope.name else node.name
        self.definitions.append((header.end() if header else start, name))
        scope.binds.append((node.name, DEFINITION, NOWHERE))
        return name

    def _parametrized(
        self, node: Any, scope: Scope, nodes: list[Any]
    ) -> tuple[Scope, list[Any]]:
        """Return the scope of ``def f[T]``, and what of ``nodes`` is outside of it."""
        if types := getattr(node, "type_params", None):  # from Python 3.12
            return self._open(types[0], scope, [*types, *nodes]), []
        return scope, nodes

    def _read_TypeAlias(self, node: Any, scope: Scope) -> Iterable[Any]:
        return [node.name, *self._parametrized(node, scope, [node.value])[1]]

    def _read_Lambda(self, node: ast.Lambda, scope: Scope) -> Iterable[Any]:
        takes, values = _arguments(node.args)
        self._open(node, scope, [*takes, node.body])
        return values

    def _read_ListComp(self, node: Any, scope: Scope) -> Iterable[Any]:
        first, *others = node.generators
        is_dict = isinstance(node, ast.DictComp)
        results = [node.key, node.value] if is_dict else [node.elt]
        self._open(node, scope, [first.target, *first.ifs, *others, *results])
        return [first.iter]

    _read_SetComp = _read_DictComp = _read_GeneratorExp = _read_ListComp

    # What binds a name without a node of its own; each returns what is below it.

    def _read_arg(self, node: Any, scope: Scope) -> Iterable[Any]:
        scope.binds.append((node.arg, VALUE, NOWHERE))
        return ()  # its annotation belongs to the scope around

    def _read_ExceptHandler(self, node: Any, scope: Scope) -> Iterable[Any]:
        if node.name:
            word = _AS.search(self._data, self.end(node.type))
            scope.binds.append((node.name, VALUE, word.end() if word else NOWHERE))
        return [node.type, *node.body]

    def _read_MatchAs(self, node: Any, scope: Scope) -> Iterable[Any]:
        if name := getattr(node, "rest", None) or getattr(node, "name", None):
            start = self._data.rfind(name.encode(), 0, self.end(node))
            scope.binds.append((name, VALUE, start))
        return ast.iter_child_nodes(node)

    _read_MatchStar = _read_MatchMapping = _read_MatchAs
    _read_TypeVar = _read_TypeVarTuple = _read_ParamSpec = _read_MatchAs

    def _read_NamedExpr(self, node: ast.NamedExpr, scope: Scope) -> Iterable[Any]:
        while scope.outer and isinstance(scope.node, _COMPREHENSIONS):
            scope = scope.outer
        scope.binds.append((node.target.id, VALUE, self.start(node.target)))
        return [node.value]

    def _read_AugAssign(self, node: ast.AugAssign, scope: Scope) -> Iterable[Any]:
        node.target.ctx = ast.Load()  # it reads what it gives a value to
        if isinstance(node.target, ast.Name):
            scope.binds.append((node.target.id, VALUE, NOWHERE))
        return [node.target, node.value]

    def _read_Import(self, node: Any, scope: Scope) -> Iterable[Any]:
        for each in node.names:
            alias = each.asname or each.name.partition(".")[0]  # import a.b binds a
            module = each.name if each.asname else alias
            self._imported(each, scope, alias, module, "")
        return ()

    def _read_ImportFrom(self, node: Any, scope: Scope) -> Iterable[Any]:
        module = "." * node.level + (node.module or "")
        for each in node.names if module != "__future__" else ():
            alias = "" if each.name == "*" else each.asname or each.name
            self._imported(each, scope, alias, module, each.name)
        return ()

    def _imported(self, each: ast.alias, scope: Scope, *what: str) -> None:
        start = self.end(each) - len((each.asname or each.name).encode())
        scope.binds.append((what[0], IMPORT, NOWHERE))
        self.imports.append((start, scope, Import(*what)))

    def _read_Global(self, node: ast.Global, scope: Scope) -> Iterable[Any]:
        scope.globals.update(node.names)
        return ()

    # What only the grammar tells.

    def _read_Match(self, node: ast.Match, scope: Scope) -> Iterable[Any]:
        self.kinds[self.start(node), self.start(node) + len(b"match")] = "keyword"
        for case in node.cases:
            start = self._data.rfind(b"case", 0, self.start(case.pattern))
            self.kinds[start, start + len(b"case")] = "keyword"
        return ast.iter_child_nodes(node)

    def _read_Expr(self, node: ast.Expr, scope: Scope) -> Iterable[Any]:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            self.kinds[self.start(node), self.end(node)] = "docstring"
        return [node.value]


def _arguments(arguments: ast.arguments) -> tuple[list[ast.arg], list[Any]]:
    """Return what a function takes, and the values that are there by default."""
    takes = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    takes += filter(None, (arguments.vararg, arguments.kwarg))
    return takes, [*arguments.defaults, *arguments.kw_defaults]


_FIELDS: dict[type, list[str]] = {
    kind: [name for name in kind._fields if name not in _NO_NODES]
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""By kind of node, what may hold nodes."""
del _FIELDS[ast.Constant]
_READ: dict[type, Callable[[ScopeReader, Any, Scope], Iterable[Any]]] = {
    getattr(ast, name.removeprefix("_read_")): read
    for name, read in vars(ScopeReader).items()
    if name.startswith("_read_") and hasattr(ast, name.removeprefix("_read_"))
}
"""By kind of node, what reads it, if this Python has it."""
