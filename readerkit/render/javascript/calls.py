"""Calls: arguments in the order of parameters where they are known, else by name."""

from __future__ import annotations

import ast
import json

from readerkit.render.javascript.expressions import Expressions, is_type
from readerkit.render.javascript.program import Own, is_cast
from readerkit.render.javascript.scope import FunctionScope, parameters, words

OF_TEXT_AND_LISTS = words(
    "split strip startswith endswith partition rpartition replace format "
    "translate splitlines isidentifier ljust rjust casefold lower upper insert "
    "removeprefix removesuffix join find append extend pop sort index count items "
    "keys values get setdefault intersection union is_integer bit_length isdigit "
    "islower rstrip lstrip fullmatch"
)
"""Methods of Python's own values, which the runtime dispatches."""


class CallWriter(Expressions):
    """Writes expressions, and what they call."""

    def _call(self, node: ast.Call, scope: FunctionScope) -> str:
        if is_cast(node):
            return self.write(node.args[1], scope)
        function = node.func
        if isinstance(function, ast.Subscript) and is_type(function.value):
            function = function.value  # list[str]()
        target = self._called(function, scope)
        if isinstance(target, ast.ClassDef):
            fixed = self._fixed(_fields(target), node, scope)
            if fixed is not None and not _has_init(target):
                return f"new {self.write(function, scope)}({fixed})"
            return self._by_name("$.make", function, node, scope)
        if isinstance(target, ast.FunctionDef) and not target.decorator_list:
            names = parameters(target.args)
            if not target.args.vararg and not target.args.kwarg:
                fixed = self._fixed(names, node, scope)
                if fixed is not None:
                    return f"{self.write(function, scope)}({fixed})"
        if isinstance(function, ast.Name) and scope.is_class(function.id):
            return self._by_name("$.make", function, node, scope)
        if isinstance(function, ast.Attribute):
            return self._method(function, node, scope)
        if not node.keywords:
            name = self.write(function, scope)
            new = "new " * name.startswith("$.") * name.endswith(("Error", "Exception"))
            return f"{new}{name}({self.all(node.args, scope)})"
        return self._by_name("$.kw", function, node, scope)

    def _called(self, function: ast.expr, scope: FunctionScope) -> ast.AST | None:
        """Return the definition that a name stands for, if that is known."""
        if not isinstance(function, ast.Name) or scope.find(function.id):
            return None
        found = self.program.meaning(scope.module, function.id)
        if not isinstance(found, Own):
            return None
        return self.program.module(found.module).definitions[found.name]

    def _fixed(
        self, names: list[str], node: ast.Call, scope: FunctionScope
    ) -> str | None:
        """Return arguments in the order of parameters; None where that is not known."""
        starred = any(isinstance(each, ast.Starred) for each in node.args)
        keywords = {each.arg: each.value for each in node.keywords}
        if None in keywords or (starred and keywords) or not {*keywords} <= {*names}:
            return None
        given = [self.write(each, scope) for each in node.args]
        left = names[len(given) :]
        while left and left[-1] not in keywords:
            left.pop()
        for name in left:
            value = keywords.get(name)
            given.append(self.write(value, scope) if value is not None else "void 0")
        return ",".join(given)

    def _named(self, node: ast.Call, scope: FunctionScope) -> str:
        """Return keyword arguments as a list of names and values."""
        parts = [
            f"...$.items({self.write(each.value, scope)})"
            if each.arg is None
            else f"[{json.dumps(each.arg)},{self.write(each.value, scope)}]"
            for each in node.keywords
        ]
        return f"[{','.join(parts)}]"

    def _by_name(
        self, how: str, function: ast.expr, node: ast.Call, scope: FunctionScope
    ) -> str:
        given = f"[{self.all(node.args, scope)}],{self._named(node, scope)}"
        return f"{how}({self.write(function, scope)},{given})"

    def _method(
        self, function: ast.Attribute, node: ast.Call, scope: FunctionScope
    ) -> str:
        value, name = self.write(function.value, scope), function.attr
        if name == "_replace":
            return f"$.kw($.replace,[{value}],{self._named(node, scope)})"
        if node.keywords:
            given = f"[{self.all(node.args, scope)}],{self._named(node, scope)}"
            return f"$.kwm({value},{json.dumps(name)},{given})"
        given = self.all(node.args, scope)
        if name in OF_TEXT_AND_LISTS and not self._is_module(function.value, scope):
            return f"$.m({value},{json.dumps(name)}{',' * bool(given)}{given})"
        return f"{value}.{name}({given})"

    def _is_module(self, node: ast.expr, scope: FunctionScope) -> bool:
        """Whether what a method is called on is no value, but the runtime's own."""
        if not isinstance(node, ast.Name) or scope.find(node.id):
            return False
        return not isinstance(self.program.meaning(scope.module, node.id), Own)


def _fields(definition: ast.ClassDef) -> list[str]:
    """Return the fields of a class in their order; it has no others of a parent."""
    return [
        each.target.id
        for each in definition.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    ]


def _has_init(definition: ast.ClassDef) -> bool:
    """Whether a class is made otherwise than from its fields."""
    own = any(
        isinstance(each, ast.FunctionDef) and each.name == "__init__"
        for each in definition.body
    )
    return own or not _fields(definition)
