"""Names: which are a function's own, and what every other one is called in a script."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from readerkit.render.javascript.program import Native, Own, ScriptProgram, trouble


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


RESERVED = words(
    "arguments await break case catch class const continue debugger default "
    "delete do else enum eval export extends false finally for function if "
    "implements import in instanceof interface let new null package private "
    "protected public return static super switch this throw true try typeof "
    "undefined var void while with yield Map Set Array Object Number BigInt "
    "String Math Symbol"
)
BUILTINS = words(
    "abs all any bool callable dict enumerate float frozenset getattr hash id int "
    "isinstance iter len list map filter max min next object range repr reversed "
    "round set sorted str sum super tuple type zip setattr hasattr divmod ord chr "
    "Exception ValueError TypeError KeyError ArithmeticError ZeroDivisionError "
    "OverflowError SyntaxError RecursionError MemoryError AssertionError "
    "StopIteration NotImplemented format"
)
RUNTIME = {
    "functools.lru_cache": "cached",
    "functools.cache": "cached",
    "functools.wraps": "wraps",
    "functools.partial": "partial",
    "functools.total_ordering": "same",
    "fractions.Fraction": "Fraction",
    "math": "math",
    "math.isfinite": "math.isfinite",
    "math.inf": "math.inf",
    "math.prod": "math.prod",
    "operator": "operator",
    "ast": "ast",
    "difflib": "difflib",
    "re": "re",
    "textwrap.dedent": "dedent",
    "inspect.signature": "signature",
    "itertools.accumulate": "accumulate",
    "itertools.chain": "chain",
    "collections.deque": "deque",
    "dataclasses.fields": "fields",
    "dataclasses.replace": "replace",
    "dataclasses.asdict": "asdict",
    "dataclasses.field": "field",
    "typing.get_args": "get_args",
    "typing.cast": "cast",
    "typing.Literal": "Literal",
    "typing.NamedTuple": "NamedTuple",
    "types.MappingProxyType": "same",
    "Told": "Told",
    "said": "said",
}
"""What the runtime has of other packages."""


@dataclass(slots=True)
class FunctionScope:
    """A function's names, and those around it."""

    module: str
    own: set[str] = field(default_factory=set)
    outer: FunctionScope | None = None
    owner: str = ""
    """What its methods call their class: ``cls``."""

    def find(self, name: str) -> bool:
        """Whether a name is one of a function's, and of no module."""
        return name in self.own or (self.outer is not None and self.outer.find(name))

    def is_class(self, name: str) -> bool:
        """Whether a name is the class that a classmethod was called on."""
        if name in self.own:
            return name == self.owner
        return self.outer is not None and self.outer.is_class(name)

    def inside(self, own: set[str]) -> FunctionScope:
        """Return a scope within this one."""
        return FunctionScope(self.module, own, self)


def local(name: str) -> str:
    """Return a function's own name as a script writes it."""
    return f"{name}_$" if name in RESERVED else name


class ScriptNames:
    """What each definition is called in the script: one name for each, no two alike."""

    def __init__(self, program: ScriptProgram) -> None:
        self.program = program
        self._given: dict[Own, str] = {}
        self._counts: dict[str, int] = {}

    def of(self, own: Own) -> str:
        """Return the name of a definition."""
        if own not in self._given:
            count = self._counts[own.name] = self._counts.get(own.name, 0) + 1
            self._given[own] = f"{own.name}${'' if count == 1 else count}"
        return self._given[own]

    def write(self, node: ast.Name, scope: FunctionScope) -> str:
        """Return a name as the script says it.

        Raises:
            ReaderkitError: one that the runtime does not have.
        """
        if scope.find(node.id):
            return local(node.id)
        found = self.program.meaning(scope.module, node.id)
        if isinstance(found, Own):
            return self.of(found)
        if isinstance(found, Native):
            if found.path not in RUNTIME:
                raise trouble(scope.module, node, found.path)
            return f"$.{RUNTIME[found.path]}"
        if node.id in BUILTINS:
            return f"$.{node.id}"
        raise trouble(scope.module, node, f"the name {node.id}")


def bound_in(node: ast.AST) -> set[str]:
    """Return the names that a function binds: parameters, targets, inner functions."""
    found: set[str] = set()
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        found |= set(parameters(node.args))
    body = node.body if isinstance(node, ast.FunctionDef) else []
    for statement in body:
        _bound(statement, found)
    return found


def _bound(node: ast.AST, found: set[str]) -> None:
    if isinstance(node, ast.FunctionDef):
        found.add(node.name)
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        _walrus(node, found)
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        found.add(node.id)
    if isinstance(node, ast.ExceptHandler) and node.name:
        found.add(node.name)
    for child in ast.iter_child_nodes(node):
        _bound(child, found)


def _walrus(node: ast.AST, found: set[str]) -> None:
    for each in ast.walk(node):
        if isinstance(each, ast.NamedExpr):
            found.add(each.target.id)


def parameters(arguments: ast.arguments) -> list[str]:
    """Return the names of parameters, in the order of the script's."""
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    names += [arguments.vararg.arg] if arguments.vararg else []
    names += [each.arg for each in arguments.kwonlyargs]
    names += [arguments.kwarg.arg] if arguments.kwarg else []
    return names
