"""Expressions: one of Python's to one of JavaScript's, with the runtime's help.

Whole numbers are BigInt, floats are Number, so that both stay what they are and whole
ones stay exact; ``$`` is the runtime (``site/theme/python.js``).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence

from readerkit.render.javascript.program import TYPES, trouble
from readerkit.render.javascript.scope import (
    FunctionScope,
    ScriptNames,
    bound_in,
    local,
    parameters,
)

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitOr: "bitor",
    ast.BitAnd: "bitand",
    ast.BitXor: "bitxor",
}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "$.eq({}, {})",
    ast.NotEq: "!$.eq({}, {})",
    ast.Lt: "$.lt({}, {})",
    ast.LtE: "$.le({}, {})",
    ast.Gt: "$.lt({1}, {0})",
    ast.GtE: "$.le({1}, {0})",
    ast.In: "$.has({1}, {0})",
    ast.NotIn: "!$.has({1}, {0})",
    ast.Is: "{}==={}",
    ast.IsNot: "{}!=={}",
}


class Expressions:
    """Writes expressions of the modules of a program."""

    def __init__(self, names: ScriptNames) -> None:
        self.names = names
        self.program = names.program
        self._known_methods: set[str] = set()

    def write(self, node: ast.expr, scope: FunctionScope) -> str:
        """Return an expression as the script says it.

        Raises:
            ReaderkitError: one that is not known here, with its file and line.
        """
        make: Callable[[ast.expr, FunctionScope], str] | None = getattr(
            self, f"_{type(node).__name__.lower()}", None
        )
        if make is None:
            raise trouble(scope.module, node, type(node).__name__)
        return make(node, scope)

    def all(self, nodes: Sequence[ast.expr], scope: FunctionScope) -> str:
        """Return expressions with commas between; those with a star are spread."""
        return ",".join(self.write(each, scope) for each in nodes)

    def test(self, node: ast.expr, scope: FunctionScope) -> str:
        """Return a condition: true or false, and nothing else."""
        if isinstance(node, ast.BoolOp):
            sign = "&&" if isinstance(node.op, ast.And) else "||"
            return f"({sign.join(self.test(each, scope) for each in node.values)})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"!{self.test(node.operand, scope)}"
        text = self.write(node, scope)
        return text if isinstance(node, ast.Compare) else f"$.b({text})"

    # --- values -----------------------------------------------------------------------

    def _constant(self, node: ast.Constant, scope: FunctionScope) -> str:
        value = node.value
        if value is None:
            return "null"
        if value is Ellipsis:
            raise trouble(scope.module, node, "...")
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return f"{value}n"
        if isinstance(value, float):
            return repr(value)
        if not isinstance(value, str):
            raise trouble(scope.module, node, repr(value))
        return json.dumps(value, ensure_ascii=False)

    def _name(self, node: ast.Name, scope: FunctionScope) -> str:
        return self.names.write(node, scope)

    def _list(self, node: ast.List | ast.Tuple, scope: FunctionScope) -> str:
        return f"[{self.all(node.elts, scope)}]"

    _tuple = _list

    def _set(self, node: ast.Set, scope: FunctionScope) -> str:
        return f"$.set([{self.all(node.elts, scope)}])"

    def _dict(self, node: ast.Dict, scope: FunctionScope) -> str:
        parts = []
        for key, value in zip(node.keys, node.values, strict=True):
            text = self.write(value, scope)
            parts.append(
                f"...$.items({text})"
                if key is None
                else f"[{self.write(key, scope)},{text}]"
            )
        return f"$.dict([{','.join(parts)}])"

    def _starred(self, node: ast.Starred, scope: FunctionScope) -> str:
        return f"...{self.write(node.value, scope)}"

    def _joinedstr(self, node: ast.JoinedStr, scope: FunctionScope) -> str:
        parts = []
        for each in node.values:
            if isinstance(each, ast.Constant):
                text = json.dumps(str(each.value), ensure_ascii=False)[1:-1]
                text = text.replace('\\"', '"').replace("`", "\\`")
                parts.append(text.replace("${", "\\${"))
            else:
                parts.append(f"${{{self.write(each, scope)}}}")
        return f"`{''.join(parts)}`"

    def _formattedvalue(self, node: ast.FormattedValue, scope: FunctionScope) -> str:
        value = self.write(node.value, scope)
        if node.conversion == ord("r"):
            return f"$.repr({value})"
        if node.format_spec is None:
            return f"$.str({value})"
        return f"$.format({value},{self.write(node.format_spec, scope)})"

    # --- operators --------------------------------------------------------------------

    def _binop(self, node: ast.BinOp, scope: FunctionScope) -> str:
        if type(node.op) not in OPERATORS:
            raise trouble(scope.module, node, type(node.op).__name__)
        left, right = self.write(node.left, scope), self.write(node.right, scope)
        return f"$.{OPERATORS[type(node.op)]}({left},{right})"

    def _unaryop(self, node: ast.UnaryOp, scope: FunctionScope) -> str:
        if isinstance(node.op, ast.Not):
            return self.test(node, scope)
        value = self.write(node.operand, scope)
        if isinstance(node.op, ast.USub):
            is_number = isinstance(node.operand, ast.Constant)
            return f"-{value}" if is_number else f"$.neg({value})"
        raise trouble(scope.module, node, type(node.op).__name__)

    def _boolop(self, node: ast.BoolOp, scope: FunctionScope) -> str:
        if all(isinstance(each, ast.Compare) for each in node.values):
            return self.test(node, scope)
        name = "and" if isinstance(node.op, ast.And) else "or"
        first, *rest = (self.write(each, scope) for each in node.values)
        return f"$.{name}({first},{','.join(f'()=>({each})' for each in rest)})"

    def _compare(self, node: ast.Compare, scope: FunctionScope) -> str:
        sides = [self.write(each, scope) for each in (node.left, *node.comparators)]
        tests = []
        for at, operator in enumerate(node.ops):
            tests.append(COMPARISONS[type(operator)].format(sides[at], sides[at + 1]))
        # What stands between two signs is said twice: it must be plain to compute.
        between = node.comparators[:-1]
        if any(isinstance(n, ast.Call) for each in between for n in ast.walk(each)):
            raise trouble(scope.module, node, "a call between two comparisons")
        return tests[0] if len(tests) == 1 else f"({'&&'.join(tests)})"

    def _ifexp(self, node: ast.IfExp, scope: FunctionScope) -> str:
        test = self.test(node.test, scope)
        then, other = self.write(node.body, scope), self.write(node.orelse, scope)
        return f"({test}?{then}:{other})"

    def _namedexpr(self, node: ast.NamedExpr, scope: FunctionScope) -> str:
        return f"({local(node.target.id)}={self.write(node.value, scope)})"

    # --- parts of values --------------------------------------------------------------

    def _attribute(self, node: ast.Attribute, scope: FunctionScope) -> str:
        value = self.write(node.value, scope)
        if node.attr in self._methods():
            return f"$.bound({value},{json.dumps(node.attr)})"
        return f"{value}.{node.attr}"

    def _methods(self) -> set[str]:
        """Return the names of methods: one that is not called goes with its value."""
        if not self._known_methods:
            for module in self.program.modules.values():
                for each in module.definitions.values():
                    for one in each.body if isinstance(each, ast.ClassDef) else ():
                        if isinstance(one, ast.FunctionDef) and not one.decorator_list:
                            self._known_methods.add(one.name)
        return self._known_methods

    def _subscript(self, node: ast.Subscript, scope: FunctionScope) -> str:
        if is_type(node.value):
            return self.write(node.value, scope)
        value = self.write(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            if node.slice.step:
                raise trouble(scope.module, node, "a slice with a step")
            ends = (node.slice.lower, node.slice.upper)
            said = ",".join(self.write(e, scope) if e else "null" for e in ends)
            return f"$.slice({value},{said})"
        return f"$.at({value},{self.write(node.slice, scope)})"

    # --- comprehensions ---------------------------------------------------------------

    def _comprehension(
        self,
        generators: Sequence[ast.comprehension],
        scope: FunctionScope,
        last: Callable[[FunctionScope], str],
    ) -> str:
        """Return the loops of a comprehension around what each turn does."""
        names = {
            each.id
            for one in generators
            for each in ast.walk(one.target)
            if isinstance(each, ast.Name)
        }
        inner = scope.inside(names)
        text = ""
        for at, one in enumerate(generators):
            over = self.write(one.iter, inner if at else scope)
            tests = "".join(f"if({self.test(each, inner)})" for each in one.ifs)
            text += f"for(const {self.write(one.target, inner)} of {over}){tests}"
        return text + last(inner)

    def _listcomp(self, node: ast.ListComp | ast.SetComp, scope: FunctionScope) -> str:
        loops = self._comprehension(
            node.generators, scope, lambda s: f"$r.push({self.write(node.elt, s)})"
        )
        return f"(()=>{{const $r=[];{loops};return $r}})()"

    def _setcomp(self, node: ast.SetComp, scope: FunctionScope) -> str:
        return f"$.set({self._listcomp(node, scope)})"

    def _dictcomp(self, node: ast.DictComp, scope: FunctionScope) -> str:
        def last(inner: FunctionScope) -> str:
            return f"$r.push([{self.all([node.key, node.value], inner)}])"

        loops = self._comprehension(node.generators, scope, last)
        return f"(()=>{{const $r=[];{loops};return $.dict($r)}})()"

    def _generatorexp(self, node: ast.GeneratorExp, scope: FunctionScope) -> str:
        loops = self._comprehension(
            node.generators, scope, lambda s: f"yield {self.write(node.elt, s)}"
        )
        return f"(function*(){{{loops}}})()"

    def _lambda(self, node: ast.Lambda, scope: FunctionScope) -> str:
        inner = scope.inside(bound_in(node))
        names = ",".join(map(local, parameters(node.args)))
        return f"(({names})=>({self.write(node.body, inner)}))"

    def _yield(self, node: ast.Yield, scope: FunctionScope) -> str:
        return f"yield {self.write(node.value, scope) if node.value else ''}"

    def _yieldfrom(self, node: ast.YieldFrom, scope: FunctionScope) -> str:
        return f"yield* {self.write(node.value, scope)}"


def is_type(node: ast.expr) -> bool:
    """Whether a name is a type that says of what it is: ``list[str]``."""
    return isinstance(node, ast.Name) and node.id in TYPES
