"""Imports point one way; what each layer may touch. Read from the source, with ast."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.helpers import ROOT

PACKAGE = ROOT / "readerkit"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(
        ".__init__"
    ): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

# cli -> commands -> render -> book -> the rest -> git -> errors; and among the rest,
# who may know whom. A part is a module of readerkit or one of its packages.
BELOW: dict[str, set[str]] = {
    "errors": set(),
    "wording": set(),
    "children": set(),
    "status": set(),
    "unseen": set(),
    "typed": set(),
    "choosing": {"errors"},
    "json_file": set(),
    "private": set(),
    "git_names": {"unseen"},
    "git_address": {"errors"},
    "git": {"children", "errors", "git_address", "git_names"},
    "document": {"errors"},
    "model": set(),
    "anchor": {"errors", "git_names", "model"},
    "anchors": {"anchor", "errors", "git_names"},
    "codec": {"git_names"},
    "counts": {"expression"},
    "expression": {"errors"},
    "numbers": set(),
    "records": {"codec", "content", "errors", "git_names", "json_file"},
    "tally": {"records"},
    "estimate": {"errors", "expression", "numbers"},
    "budget": {"children", "errors", "private", "yaml_tree"},
    "yaml_tree": {"document", "errors"},
    "content": {
        "anchor",
        "counts",
        "document",
        "errors",
        "git_names",
        "model",
        "upstreams",
        "wording",
        "yaml_tree",
    },
    "quiz": {
        "anchor",
        "content",
        "document",
        "errors",
        "expression",
        "git_names",
        "model",
        "typed",
        "json_file",
        "private",
    },
    "upstreams": {
        "anchor",
        "children",
        "errors",
        "git",
        "git_address",
        "git_names",
        "json_file",
        "model",
        "typed",
        "private",
        "wording",
    },
    "book": {"anchor", "anchors", "content", "errors", "git_names", "upstreams"},
    "reading": {"book", "content", "document", "errors", "upstreams"},
    "labs": {
        "budget",
        "codec",
        "content",
        "document",
        "errors",
        "estimate",
        "git_names",
        "json_file",
        "numbers",
    },
    "lit": {"anchor", "content", "errors", "git_names", "numbers", "records"},
    "links": {"anchors", "git_names"},
    "evidence": {"anchor", "content", "lit", "records"},
    "routes": {"content"},
    "render": {
        "anchors",
        "book",
        "content",
        "errors",
        "estimate",
        "evidence",
        "git_names",
        "labs",
        "links",
        "lit",
        "numbers",
        "records",
        "routes",
        "tally",
        "unseen",
        "upstreams",
        "typed",
    },
    "commands": {
        "json_file",
        "anchor",
        "anchors",
        "book",
        "budget",
        "children",
        "content",
        "errors",
        "estimate",
        "evidence",
        "expression",
        "git_names",
        "labs",
        "links",
        "lit",
        "model",
        "numbers",
        "private",
        "quiz",
        "reading",
        "records",
        "render",
        "routes",
        "status",
        "upstreams",
        "wording",
        "yaml_tree",
        "choosing",
        "typed",
    },
    "cli": {"commands", "errors", "render"},
    "__main__": {"cli"},
}
# Third parties that one place of the package alone may import.
ONLY_IN = {
    "tree_sitter": "anchors",
    "tree_sitter_python": "anchors",
    "git": "git",
    "jsonschema_rs": "content",
    "jinja2": "render",
    "markdown_it": "render",
    "math_core": "render",
    "mermaidx": "commands",
    "nh3": "render",
    "rich": "render",
    "filelock": "upstreams",
    "pypi_simple": "upstreams",
    "platformdirs": "commands",
    "fsrs": "quiz",
}
PURE = [
    "anchor",
    "anchors",
    "book",
    "codec",
    "content",
    "counts",
    "document",
    "estimate",
    "evidence",
    "expression",
    "links",
    "lit",
    "model",
    "numbers",
    "reading",
    "records",
    "render",
    "yaml_tree",
]
OUTSIDE = {
    "io",
    "os",
    "pathlib",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "urllib",
}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


@cache
def imports(path: Path, *, top_level: bool = False) -> frozenset[str]:
    """Return what a module imports, by full name; types alone do not count."""
    return frozenset(_imports(path, top_level))


def _imports(path: Path, top_level: bool) -> Iterator[str]:
    tree = parsed(path)
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for statement in branch.body
        for node in ast.walk(statement)
    }
    nodes = tree.body if top_level else ast.walk(tree)
    for node in nodes:
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else str(node.module)


@cache
def calls(module: str) -> set[str]:
    return {
        ast.unparse(node.func)
        for node in ast.walk(parsed(MODULES[module]))
        if isinstance(node, ast.Call)
    }


def part(module: str) -> str:
    """Return the part of readerkit that a module belongs to; '' for the package."""
    return module.split(".")[1] if "." in module else ""


def test_every_part_has_its_place_in_the_layers():
    assert {part(module) for module in MODULES} - {""} == set(BELOW)


def test_the_table_of_layers_is_acyclic():
    TopologicalSorter(BELOW).prepare()


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module):
    mine = part(module)
    known = {name for name in imports(MODULES[module]) if name.startswith("readerkit")}
    others = {part(name) for name in known} - {mine, ""}
    assert others <= BELOW.get(mine, set())


def test_modules_import_one_another_without_a_cycle():
    graph = {
        module: {name for name in imports(path) if name in MODULES and name != module}
        for module, path in MODULES.items()
    }
    # A package's own file gathers what its modules offer: it stands above them.
    for module, known in graph.items():
        known -= {name for name in known if module.startswith(name + ".")}
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("module", MODULES)
def test_readerkit_never_imports_torch_or_an_upstream(module):
    tops = {name.split(".")[0] for name in imports(MODULES[module])}
    assert not tops & {"torch", "numpy", "megatron", "deepspeed"}


@pytest.mark.parametrize("module", MODULES)
def test_of_the_minis_only_the_schedules_are_imported(module):
    minis = {name for name in imports(MODULES[module]) if name.startswith("mini_impls")}
    assert minis <= {"mini_impls.schedules"}


@pytest.mark.parametrize(("library", "place"), ONLY_IN.items())
def test_library_has_one_importer(library, place):
    importers = {
        part(module)
        for module, path in MODULES.items()
        if library in {name.split(".")[0] for name in imports(path)}
    }
    assert importers == {place}


@pytest.mark.parametrize(
    "module",
    [
        module
        for module in MODULES
        if part(module) in PURE
        or (part(module) == "quiz" and module != "readerkit.quiz.history")
    ],
)
def test_what_stands_between_the_edges_touches_no_disk_and_no_process(module):
    names = imports(MODULES[module]) - {"urllib.parse"}  # which only spells
    assert not {name.split(".")[0] for name in names} & OUTSIDE
    hidden = {"open", "print", "input", "eval", "exec", "__import__"}
    assert not calls(module) & hidden


@pytest.mark.parametrize("module", MODULES)
def test_only_commands_print_and_only_cli_exits(module):
    if module == "readerkit.budget.watchdog":  # a process of its own
        return
    said = calls(module) & {"print", "click.echo", "click.secho", "sys.stdout.write"}
    assert not said or part(module) in ("commands", "cli")
    assert not calls(module) & {"sys.exit", "os._exit", "exit", "quit"} or (
        part(module) == "cli"
    )


@pytest.mark.parametrize(
    "module", [module for module in MODULES if part(module) != "commands"]
)
def test_no_import_hides_in_a_function_to_dodge_a_cycle(module):
    path = MODULES[module]
    late = imports(path) - imports(path, top_level=True)
    ours = {name for name in late if name.startswith("readerkit")}
    # Late for the sake of start-up: the parsers, git and the widths of letters.
    assert {name for name in ours if part(name) != "anchors"} <= {
        "readerkit.content.read",
        "readerkit.yaml_tree",
        "readerkit.upstreams.git_source",
        "readerkit.render.visible",
    }


@pytest.mark.parametrize("module", MODULES)
def test_module_says_what_it_is_for(module):
    assert ast.get_docstring(parsed(MODULES[module]))


def test_errors_import_nothing_of_the_package():
    names = imports(MODULES["readerkit.errors"])
    assert not {name for name in names if name.startswith("readerkit")}
