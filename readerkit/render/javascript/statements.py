"""Statements, functions and classes: those of Python to those of JavaScript."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable

from readerkit.render.javascript.calls import CallWriter
from readerkit.render.javascript.expressions import OPERATORS
from readerkit.render.javascript.program import Definition, Own, trouble
from readerkit.render.javascript.scope import FunctionScope, bound_in, local, parameters

_NO_DECORATORS = frozenset(("property", "classmethod", "staticmethod"))


class Statements(CallWriter):
    """Writes definitions of modules, and what is in them."""

    def define(self, module: str, node: Definition) -> str:
        """Return a definition of a module."""
        scope = FunctionScope(module)
        if isinstance(node, ast.FunctionDef):
            name = self.names.of(Own(module, node.name))
            return f"const {name}={self.function(node, scope)};"
        if isinstance(node, ast.ClassDef):
            return self._class(node, scope)
        targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
        if node.value is None or len(targets) != 1:
            raise trouble(module, node, "an assignment of this kind")
        value = self._value_of(node.value, scope)
        return f"const {self.write(targets[0], scope)}={value};"

    def _value_of(self, node: ast.expr, scope: FunctionScope) -> str:
        """Return a constant of a module; a list of words that a type is of."""
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
            words = node.slice
            each = words.elts if isinstance(words, ast.Tuple) else [words]
            return f"[{self.all(each, scope)}]"
        return self.write(node, scope)

    # --- functions --------------------------------------------------------------------

    def function(
        self, node: ast.FunctionDef, outer: FunctionScope, skip: int = 0
    ) -> str:
        """Return a function as a value, decorated; ``skip`` parameters are given."""
        scope = outer.inside(bound_in(node))
        text = self._bare(node, scope, skip)
        names = parameters(node.args)[skip:]
        about = [json.dumps(" ".join(names))]
        if node.args.vararg or node.args.kwarg:
            fixed = len(node.args.args) - skip
            shape = f"{fixed if node.args.vararg else -1},{int(bool(node.args.kwarg))}"
            text = f"$.gather({text},{about[0]},{shape})"
        elif names:
            decorated = [_types(node)] if node.decorator_list else []
            text = f"$.fn({','.join([text, *about, *decorated])})"
        for each in reversed(node.decorator_list):
            if not (isinstance(each, ast.Name) and each.id in _NO_DECORATORS):
                text = f"{self.write(each, outer)}({text})"
        return text

    def _bare(self, node: ast.FunctionDef, scope: FunctionScope, skip: int) -> str:
        star = "*" if _is_generator(node) else ""
        given, body = self._head(node, scope, skip), self.body(node, scope)
        return f"function{star}({given}){{{body}}}"

    def _head(self, node: ast.FunctionDef, scope: FunctionScope, skip: int = 0) -> str:
        """Return the parameters with their defaults."""
        each = [*node.args.posonlyargs, *node.args.args]
        defaults: list[ast.expr | None] = [None] * len(each)
        defaults[len(each) - len(node.args.defaults) :] = node.args.defaults
        shown = [*zip((one.arg for one in each), defaults, strict=True)]
        if node.args.vararg:
            shown.append((node.args.vararg.arg, None))
        only = (one.arg for one in node.args.kwonlyargs)
        shown += zip(only, node.args.kw_defaults, strict=True)
        if node.args.kwarg:
            shown.append((node.args.kwarg.arg, None))
        outer = scope.outer or scope
        return ",".join(
            local(name) + (f"={self.write(value, outer)}" if value else "")
            for name, value in shown[skip:]
        )

    def body(self, node: ast.FunctionDef, scope: FunctionScope) -> str:
        """Return what a function does, its names declared first."""
        own = sorted(scope.own - set(parameters(node.args)))
        declared = f"let {','.join(map(local, own))};" if own else ""
        return declared + self.block(node.body, scope)

    def block(self, nodes: Iterable[ast.stmt], scope: FunctionScope) -> str:
        """Return statements one after the other."""
        return "".join(self._statement(each, scope) for each in nodes)

    # --- classes ----------------------------------------------------------------------

    def _class(self, node: ast.ClassDef, scope: FunctionScope) -> str:
        name = self.names.of(Own(scope.module, node.name))
        bases = [self.write(each, scope) for each in node.bases]
        extends = f" extends {bases[0]}" if bases else ""
        inside = [self._constructor(node, scope, bool(bases))]
        after = []
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                if self.program.has(scope.module, node.name, each.name):
                    inside.append(self._member(each, scope))
            elif isinstance(each, ast.Assign):
                target = each.targets[0]
                assert isinstance(target, ast.Name)
                if target.id not in ("__slots__", "__hash__"):
                    raise trouble(scope.module, each, "a constant of a class")
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        if fields:
            types = {_field(each): ast.unparse(each.annotation) for each in fields}
            usual = ",".join(
                f"[{json.dumps(_field(each))},{self.write(each.value, scope)}]"
                for each in fields
                if each.value is not None and "$.NamedTuple" in bases
            )
            shown = json.dumps(types, separators=(",", ":"))
            after.append(f"$.fields_of({name},{shown},[{usual}]);")
        return f"class {name}{extends}{{{''.join(inside)}}}{''.join(after)}"

    def _constructor(
        self, node: ast.ClassDef, scope: FunctionScope, extends: bool
    ) -> str:
        """Return what sets the fields; a class with an ``__init__`` calls that."""
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        methods = {e.name for e in node.body if isinstance(e, ast.FunctionDef)}
        if "__init__" in methods:
            return "constructor(...a){this.__init__(...a)}"
        if not fields:
            return ""
        given, sets = [], "super();" if extends else ""
        for each in fields:
            name = _field(each)
            value = f"={self._default(each.value, scope)}" if each.value else ""
            given.append(local(name) + value)
            sets += f"this.{name}={local(name)};"
        if "__post_init__" in methods:
            sets += "this.__post_init__();"
        return f"constructor({','.join(given)}){{{sets}}}"

    def _default(self, node: ast.expr, scope: FunctionScope) -> str:
        """Return the default of a field; of ``field``, what its factory makes."""
        is_field = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if not (is_field and node.func.id == "field"):  # type: ignore[attr-defined]
            return self.write(node, scope)
        assert isinstance(node, ast.Call)
        for each in node.keywords:
            if each.arg == "default":
                return self.write(each.value, scope)
            if each.arg == "default_factory":
                made = ast.copy_location(ast.Call(each.value, [], []), node)
                return self.write(made, scope)
        raise trouble(scope.module, node, "a field without a default")

    def _member(self, node: ast.FunctionDef, outer: FunctionScope) -> str:
        words = {ast.unparse(each) for each in node.decorator_list}
        scope = outer.inside(bound_in(node))
        first = "" if "staticmethod" in words else node.args.args[0].arg
        if "classmethod" in words:
            scope.owner = first
        names = parameters(node.args)[bool(first) :]
        given = self._head(node, scope, bool(first))
        this = f"const {local(first)}=this;" if first else ""
        body = this + self.body(node, scope)
        static = "static " * bool(words & {"classmethod", "staticmethod"})
        star = "*" if _is_generator(node) else ""
        if "property" in words or "cached_property" in words:
            return f"get {node.name}(){{{body}}}"
        if not (node.args.vararg or node.args.kwarg):
            text = f"{static}{star}{node.name}({given}){{{body}}}"
            if not names or node.name.startswith("__"):
                return text
            return f"{text}static $p_{node.name}={json.dumps(' '.join(names))};"
        shown = json.dumps(" ".join(names))
        fixed = len(node.args.args) - bool(first)
        shape = f"{fixed if node.args.vararg else -1},{int(bool(node.args.kwarg))}"
        return (
            f"{static}{node.name}(...a){{return this.${node.name}(a,[])}}"
            f"{static}${node.name}(a,k){{return "
            f"$.gather((function{star}({given}){{{body}}}).bind(this),{shown},{shape})"
            f".$raw(a,k)}}"
        )

    # --- statements -------------------------------------------------------------------

    def _statement(self, node: ast.stmt, scope: FunctionScope) -> str:
        make: Callable[[ast.stmt, FunctionScope], str] | None = getattr(
            self, f"_do_{type(node).__name__.lower()}", None
        )
        if make is None:
            raise trouble(scope.module, node, type(node).__name__)
        return make(node, scope)

    def _do_expr(self, node: ast.Expr, scope: FunctionScope) -> str:
        if isinstance(node.value, ast.Constant):
            return ""
        return f"{self.write(node.value, scope)};"

    def _do_return(self, node: ast.Return, scope: FunctionScope) -> str:
        return f"return {self.write(node.value, scope) if node.value else 'null'};"

    def _do_pass(self, node: ast.Pass, scope: FunctionScope) -> str:
        return ""

    def _do_assert(self, node: ast.Assert, scope: FunctionScope) -> str:
        return ""

    def _do_importfrom(self, node: ast.ImportFrom, scope: FunctionScope) -> str:
        return ""  # what it brings is known to the module

    def _do_import(self, node: ast.Import, scope: FunctionScope) -> str:
        return ""

    def _do_break(self, node: ast.Break, scope: FunctionScope) -> str:
        return "break;"

    def _do_continue(self, node: ast.Continue, scope: FunctionScope) -> str:
        return "continue;"

    def _do_functiondef(self, node: ast.FunctionDef, scope: FunctionScope) -> str:
        return f"{local(node.name)}={self.function(node, scope)};"

    def _do_assign(self, node: ast.Assign, scope: FunctionScope) -> str:
        value = self.write(node.value, scope)
        if len(node.targets) == 1:
            return self._store(node.targets[0], value, scope)
        text = f"const $v={value};"
        stores = (self._store(each, "$v", scope) for each in node.targets)
        return f"{{{text}{''.join(stores)}}}"

    def _store(self, target: ast.expr, value: str, scope: FunctionScope) -> str:
        if isinstance(target, ast.Subscript):
            if isinstance(target.slice, ast.Slice):
                raise trouble(scope.module, target, "an assignment to a slice")
            of, at = self.write(target.value, scope), self.write(target.slice, scope)
            return f"$.put({of},{at},{value});"
        if isinstance(target, ast.Tuple):
            plain = (ast.Name, ast.Tuple, ast.Starred)
            if not all(isinstance(each, plain) for each in target.elts):
                stores = (
                    self._store(each, f"$v[{at}]", scope)
                    for at, each in enumerate(target.elts)
                )
                return f"{{const $v=[...{value}];{''.join(stores)}}}"
            if any(isinstance(each, ast.Starred) for each in target.elts[:-1]):
                return self._store_with_star(target, value, scope)
        return f"{self.write(target, scope)}={value};"

    def _store_with_star(
        self, target: ast.Tuple, value: str, scope: FunctionScope
    ) -> str:
        """Take the last of several apart as well."""
        at = [isinstance(each, ast.Starred) for each in target.elts].index(True)
        last = target.elts[at + 1 :]
        starred = target.elts[at]
        assert isinstance(starred, ast.Starred)
        first = self.all(target.elts[:at], scope) + "," * bool(at)
        text = f"const $v=[...{value}],$l=$v.splice(-{len(last)});"
        name = self.write(starred.value, scope)
        return f"{{{text}[{first}...{name}]=$v;[{self.all(last, scope)}]=$l;}}"

    def _do_annassign(self, node: ast.AnnAssign, scope: FunctionScope) -> str:
        if node.value is None:
            return ""
        return self._store(node.target, self.write(node.value, scope), scope)

    def _do_augassign(self, node: ast.AugAssign, scope: FunctionScope) -> str:
        shown: ast.expr = node.target
        now, value = self.write(shown, scope), self.write(node.value, scope)
        name = "iadd" if isinstance(node.op, ast.Add) else OPERATORS[type(node.op)]
        return self._store(node.target, f"$.{name}({now},{value})", scope)

    def _do_delete(self, node: ast.Delete, scope: FunctionScope) -> str:
        text = ""
        for each in node.targets:
            if not isinstance(each, ast.Subscript):
                raise trouble(scope.module, node, "del of a name")
            of, at = self.write(each.value, scope), self.write(each.slice, scope)
            text += f"$.take({of},{at});"
        return text

    def _do_if(self, node: ast.If, scope: FunctionScope) -> str:
        text = f"if({self.test(node.test, scope)}){{{self.block(node.body, scope)}}}"
        if node.orelse:
            text += f"else{{{self.block(node.orelse, scope)}}}"
        return text

    def _do_for(self, node: ast.For, scope: FunctionScope) -> str:
        if node.orelse:
            raise trouble(scope.module, node, "else of a loop")
        over, body = self.write(node.iter, scope), self.block(node.body, scope)
        return f"for({self.write(node.target, scope)} of {over}){{{body}}}"

    def _do_while(self, node: ast.While, scope: FunctionScope) -> str:
        if node.orelse:
            raise trouble(scope.module, node, "else of a loop")
        body = self.block(node.body, scope)
        return f"while({self.test(node.test, scope)}){{{body}}}"

    def _do_raise(self, node: ast.Raise, scope: FunctionScope) -> str:
        return f"throw {self.write(node.exc, scope) if node.exc else '$e'};"

    def _do_try(self, node: ast.Try, scope: FunctionScope) -> str:
        if node.finalbody:
            raise trouble(scope.module, node, "finally")
        tries = self.block(node.body, scope)
        text = f"{{let $ok=false;try{{{tries}$ok=true}}catch($e){{"
        for each in node.handlers:
            kinds = self.write(each.type, scope) if each.type else "$.Exception"
            name = f"{local(each.name)}=$e;" if each.name else ""
            body = self.block(each.body, scope)
            text += f"if($.caught($e,{kinds})){{{name}{body}}}else "
        text += "throw $e}"
        if node.orelse:
            text += f"if($ok){{{self.block(node.orelse, scope)}}}"
        return text + "}"


def _field(node: ast.AnnAssign) -> str:
    assert isinstance(node.target, ast.Name)
    return node.target.id


def _types(node: ast.FunctionDef) -> str:
    """Return what is said of each parameter: a decorator may ask for it."""
    each = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    said = [ast.unparse(one.annotation) if one.annotation else "" for one in each]
    return json.dumps(said, separators=(",", ":"))


def _is_generator(node: ast.FunctionDef) -> bool:
    todo: list[ast.AST] = [*node.body]
    while todo:
        each = todo.pop()
        if isinstance(each, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(each, (ast.FunctionDef, ast.Lambda, ast.GeneratorExp)):
            todo += ast.iter_child_nodes(each)
    return False
