"""Names of the real upstreams, held against Python's own parser and scoping."""

from __future__ import annotations

import ast
import symtable
from collections import defaultdict
from contextlib import suppress

import pytest

from readerkit.anchors.xref.links import Links
from readerkit.anchors.xref.names import collect_names
from tests.content.test_annotations import at_hand, library, sources

EVERY = 6
"""One file in so many is read: half a minute would be too long for all."""


class Reader(ast.NodeVisitor):
    """Where a file uses names of its module, by Python's own tables of symbols."""

    def __init__(self, path: str, text: str) -> None:
        self.found: set[tuple[int, int, str]] = set()
        self.table = symtable.symtable(text, path, "exec")
        self.waiting = self._children(self.table)
        self.around_it: list[symtable.SymbolTable] = []
        self.visit(ast.parse(text))

    def _children(self, table):
        children = defaultdict(list)
        for child in table.get_children():
            children[child.get_name(), child.get_lineno()].append(child)
        return children

    def inside(self, name, line, nodes):
        outer = self.table, self.waiting
        self.around_it.append(self.table)
        self.table = self.waiting[name, line].pop(0)
        self.waiting = self._children(self.table)
        for node in nodes:
            self.visit(node)
        self.table, self.waiting = outer
        self.around_it.pop()

    def around(self, arguments):
        for node in (*arguments.defaults, *filter(None, arguments.kw_defaults)):
            self.visit(node)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for each in (*every, arguments.vararg, arguments.kwarg):
            if each and each.annotation:
                self.visit(each.annotation)

    def visit_FunctionDef(self, node):
        for each in node.decorator_list:
            self.visit(each)
        self.around(node.args)
        if node.returns:
            self.visit(node.returns)
        self.inside(node.name, node.lineno, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        for each in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(each)
        self.inside(node.name, node.lineno, node.body)

    def visit_Lambda(self, node):
        self.around(node.args)
        self.inside("lambda", node.lineno, [node.body])

    def comprehension(self, name, node, *results):
        first, *others = node.generators
        self.visit(first.iter)
        inner = [first.target, *first.ifs, *others, *results]
        self.inside(name, node.lineno, inner)

    def visit_ListComp(self, node):
        self.comprehension("listcomp", node, node.elt)

    def visit_SetComp(self, node):
        self.comprehension("setcomp", node, node.elt)

    def visit_GeneratorExp(self, node):
        self.comprehension("genexpr", node, node.elt)

    def visit_DictComp(self, node):
        self.comprehension("dictcomp", node, node.key, node.value)

    def visit_AugAssign(self, node):
        if isinstance(node.target, ast.Name):
            self.note(node.target)  # it reads the value that it changes
        self.generic_visit(node)

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Store):
            self.note(node)

    def note(self, node):
        if self.is_of_module(node.id):
            self.found.add((node.lineno, node.col_offset, node.id))

    def is_of_module(self, name):
        if self.table.get_type() == "module":
            return True
        with suppress(KeyError):
            return self.table.lookup(name).is_global()
        # An annotation that nobody evaluates is in no table.
        return not any(
            name in table.get_identifiers() and table.lookup(name).is_local()
            for table in [self.table, *self.around_it]
            if table.get_type() == "function"
        )


def test_uses_of_a_module_s_names_are_those_that_python_sees():
    files = [
        (path, sources(name).read(path))
        for name in ("megatron", "pytorch")
        for path in sorted(library().lock(library().upstream(name)).files)[::EVERY]
        if path.endswith(".py")
    ]
    assert len(files) > 80
    seen = 0
    wrong = []
    for path, data in files:
        names = collect_names(data)
        own = {name for name in names.defined if "." not in name}
        own.update(each.alias for each in names.imports if not each.scope)
        starts = [0]
        for line in data.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        reader = Reader(path, data.decode())
        python = {each for each in reader.found if each[2] in own}
        imports = _import_lines(data)
        ours = {
            (use.line, use.start - starts[use.line - 1], head)
            for use in names.uses
            if (head := use.chain.partition(".")[0]) in own
            if not use.owner and use.line not in imports
        }
        seen += len(python)
        wrong += [(path, "not linked", each) for each in sorted(python - ours)]
        wrong += [(path, "linked", each) for each in sorted(ours - python)]
    assert wrong == []
    assert seen > 5_000


def _import_lines(data: bytes) -> set[int]:
    return {
        line
        for node in ast.walk(ast.parse(data))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }


TE_LAYERS, TE_LINEAR, TE_BASE, TE_TORCH, STARTS, MODULES = (
    ("megatron", "megatron/core/extensions/transformer_engine.py"),
    ("transformer-engine", "transformer_engine/pytorch/module/linear.py"),
    ("transformer-engine", "transformer_engine/pytorch/module/base.py"),
    ("transformer-engine", "transformer_engine/pytorch/__init__.py"),
    ("megatron-training", "megatron/training/initialize.py"),
    ("transformer-engine", "transformer_engine/pytorch/module/__init__.py"),
)
STATE = ("megatron", "megatron/core/parallel_state.py")
CORE = ("megatron", "megatron/core/__init__.py")


@pytest.mark.parametrize(
    ("file", "chain", "target"),
    [
        (TE_LAYERS, "te.pytorch.Linear", (*TE_LINEAR, "Linear")),
        (STARTS, "te_module.base.initialize_ub", (*TE_BASE, "initialize_ub")),
        (
            STARTS,
            "mpu.initialize_model_parallel",
            (*STATE, "initialize_model_parallel"),
        ),
    ],
)
def test_a_name_of_one_upstream_leads_to_its_definition_in_another(file, chain, target):
    read = (TE_LAYERS, TE_LINEAR, TE_BASE, TE_TORCH, STARTS, MODULES, STATE, CORE)
    links = Links(
        {each: collect_names(at_hand(each[0]).read(each[1])) for each in read}
    )
    known = {chain: link for (chain, _), link in links.links_of(file).items()}
    [found] = known[chain].parts[-1][1]
    assert (found.upstream, found.path, found.name) == target
