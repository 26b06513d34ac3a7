"""The house: its rooms, what each may import and touch, and one class per name.

Read from the source, with ast. Each rule is one test that lists every offender.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers import ROOT


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {
    _name(path): path
    for package in ("readerkit", "mini_impls")
    for path in sorted((ROOT / package).rglob("*.py"))
}
TOOLKIT = {name: path for name, path in MODULES.items() if name.startswith("readerkit")}

# Room by room, from the ground up: what each may import, all of it from further down.
# CONTRIBUTING draws it.
BELOW: dict[str, set[str]] = {
    "errors": set(),
    "system": set(),
    "wording": {"errors"},
    "model": {"errors", "system", "wording"},
    "anchors": {"errors", "model", "wording"},
    "upstreams": {"errors", "model", "system", "wording"},
    "minis": {"errors", "system", "wording"},
    "estimate": {"errors", "minis", "model", "wording"},
    "content": {"anchors", "errors", "model", "upstreams", "wording"},
    "demos": {"errors", "estimate", "minis", "system", "upstreams", "wording"},
    "evidence": {"content", "errors", "model", "wording"},
    "budget": {"content", "errors", "system", "wording"},
    "quiz": {"content", "errors", "minis", "model", "system", "wording"},
    "labs": {"budget", "content", "errors", "estimate", "model", "wording"},
    "claims": {
        "anchors",
        "content",
        "errors",
        "estimate",
        "evidence",
        "model",
        "upstreams",
        "wording",
    },
    "render": {
        "anchors",
        "claims",
        "content",
        "errors",
        "estimate",
        "evidence",
        "labs",
        "minis",
        "model",
        "quiz",
        "upstreams",
        "wording",
    },
    "app": {
        "anchors",
        "budget",
        "claims",
        "content",
        "errors",
        "estimate",
        "evidence",
        "labs",
        "model",
        "quiz",
        "render",
        "system",
        "upstreams",
        "wording",
    },
    "wire": {
        "anchors",
        "app",
        "claims",
        "content",
        "errors",
        "evidence",
        "model",
        "quiz",
        "render",
        "system",
        "upstreams",
        "wording",
    },
    "site": {
        "anchors",
        "app",
        "claims",
        "content",
        "errors",
        "evidence",
        "model",
        "quiz",
        "render",
        "system",
        "upstreams",
    },
    "compare": {
        "app",
        "content",
        "demos",
        "errors",
        "evidence",
        "minis",
        "model",
        "system",
        "upstreams",
        "wording",
    },
    "terminal": {
        "app",
        "claims",
        "content",
        "errors",
        "evidence",
        "model",
        "quiz",
        "render",
        "system",
        "upstreams",
        "wording",
    },
    "faults": {
        "anchors",
        "app",
        "compare",
        "content",
        "demos",
        "errors",
        "minis",
        "model",
        "render",
        "system",
        "terminal",
        "wording",
    },
    "commands": {
        "app",
        "budget",
        "content",
        "errors",
        "estimate",
        "labs",
        "model",
        "quiz",
        "render",
        "site",
        "system",
        "terminal",
        "upstreams",
        "wire",
        "wording",
    },
    "cli": {"commands", "errors", "render", "system", "terminal"},
}
# What is permitted though no import says so: ``cli`` finds commands by their names.
UNSEEN = {("cli", "commands")}
MAX_ROOMS = 24
# Third parties that one room alone may import.
ONLY_IN = {
    "tree_sitter": "anchors",
    "git": "upstreams",
    "jinja2": "render",
    "markdown_it": "render",
    "math_core": "render",
    "mermaidx": "app",
    "nh3": "render",
    "rich": "render",
    "filelock": "upstreams",
    "pypi_simple": "upstreams",
    "platformdirs": "app",
    "fsrs": "quiz",
    "lsprotocol": "wire",
}
# What an extra brings; whatever else is imported comes with readerkit.
EXTRAS = {"genanki": "anki", "lsprotocol": "lsp", "mcp": "mcp", "pygls": "lsp"}
# Values to values: these touch no disk and no process.
PURE = {
    "anchors",
    "claims",
    "content",
    "estimate",
    "evidence",
    "quiz",
    "render",
}
TOUCHES_DISK = {
    "readerkit.quiz.history",
    "readerkit.quiz.history_database",
    "readerkit.quiz.history_file",
}
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
# Loaded where they are needed, for the sake of start-up: parsers, git, letters' widths.
# In the rooms that a command enters first, everything may be.
LATE_ROOMS = {"app", "commands", "terminal"}
LATE = {
    "readerkit.anchors",
    "readerkit.anchors.fingerprint",
    "readerkit.anchors.resolve",
    "readerkit.content.validation",
    "readerkit.content.strict_yaml",
    "readerkit.upstreams.git_source",
    "readerkit.render.terminal_safe",
}
# Beyond 350 lines: every field of a record is declared in the one file.
LONGER = {"readerkit.evidence.record"}
# What one word means twice on purpose: each side of a comparison, the layers that
# Megatron has under one name in one file and ours in two.
TWICE = {
    "ColumnParallelLinear",
    "LinearWithGradAccumulationAndAsyncCommunication",
    "MegatronSide",
    "MiniSide",
    "RowParallelLinear",
    "TorchSide",
}


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_bytes())


def _conditions(tree: ast.Module, *tests: str) -> set[int]:
    """Return the nodes under an ``if`` with one of these conditions, by id."""
    return {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) in tests
        for statement in branch.body
        for node in ast.walk(statement)
    }


@cache
def imports(module: str, *, top_level: bool = False) -> frozenset[str]:
    """Return what a module imports, by full name.

    Types alone do not count, nor what a file does when it is run as a program.
    """
    return frozenset(_imports(module, top_level))


def _imports(module: str, top_level: bool) -> Iterator[str]:
    tree = parsed(module)
    beside = _conditions(tree, "TYPE_CHECKING", "__name__ == '__main__'")
    for node in tree.body if top_level else ast.walk(tree):
        if id(node) in beside:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: a relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else str(node.module)


def room(module: str) -> str:
    """Return the room that a module belongs to; '' for the package itself."""
    package, *rest = module.split(".")
    if package == "readerkit":
        return rest[0] if rest else ""
    return rest[0] if rest and (ROOT / package / rest[0]).is_dir() else "minis"


def rooms_of(module: str) -> set[str]:
    """Return the rooms that a module imports from."""
    ours = {name for name in imports(module) if name in MODULES}
    return {room(name) for name in ours} - {room(module), ""}


@cache
def calls(module: str) -> frozenset[str]:
    return frozenset(
        ast.unparse(node.func)
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Call)
    )


def tops(module: str) -> set[str]:
    return {name.split(".")[0] for name in imports(module)}


def test_imports_point_down_and_the_rooms_are_few():
    assert {room(module) for module in MODULES} - {"", "__main__"} == set(BELOW)
    assert len(BELOW) <= MAX_ROOMS
    TopologicalSorter(BELOW).prepare()
    wrong = {
        module: others
        for module in MODULES
        if room(module) not in ("", "__main__")
        and (others := rooms_of(module) - BELOW[room(module)])
    }
    assert not wrong


def test_what_is_permitted_is_used():
    used = {(room(module), other) for module in MODULES for other in rooms_of(module)}
    permitted = {(room, other) for room, others in BELOW.items() for other in others}
    assert permitted - used <= UNSEEN <= permitted


def test_the_drawing_in_contributing_has_each_room_above_what_it_imports():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    drawing = text[text.index("\n    cli ") :].partition("\n\n")[0]
    drawn = re.findall(r"^ {4}(\w+)", drawing, re.MULTILINE)
    rooms = ["minis" if name == "mini_impls" else name for name in reversed(drawn)]
    assert rooms == [*BELOW]
    assert not {
        (name, other)
        for line, name in enumerate(rooms)
        for other in BELOW[name].intersection(rooms[line:])
    }


def test_modules_import_one_another_without_a_cycle():
    graph = {
        module: {name for name in imports(module) if name in MODULES} - {module}
        for module in MODULES
    }
    # A package's own file gathers what its modules offer: it stands above them.
    for module, known in graph.items():
        known -= {name for name in known if module.startswith(name + ".")}
    assert set(TopologicalSorter(graph).static_order()) == set(MODULES)


def test_the_toolkit_imports_no_torch_no_upstream_and_of_the_minis_the_schedules():
    heavy = {"torch", "numpy", "megatron", "deepspeed"}
    names = ("schedules", "timeline", "zero_bubble_orders")
    schedules = {f"mini_impls.{name}" for name in names}
    minis = {
        module: name
        for module in TOOLKIT
        for name in imports(module)
        if name.split(".")[0] in heavy
        or (name.startswith("mini_impls") and name not in schedules)
    }
    assert not minis


def test_a_library_has_one_importer():
    importers = {
        library: {room(module) for module in TOOLKIT if library in tops(module)}
        for library in ONLY_IN
    }
    assert importers == {library: {place} for library, place in ONLY_IN.items()}


def test_what_is_imported_is_a_dependency_of_ours_and_not_of_a_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {"": project["dependencies"], **project["optional-dependencies"]}
    names = {
        extra: {canonicalize_name(Requirement(line).name) for line in lines}
        for extra, lines in declared.items()
    }
    distributions = packages_distributions()
    imported = {top for module in TOOLKIT for top in tops(module)}
    third = imported - sys.stdlib_module_names - {"readerkit", "mini_impls"}
    assert third >= EXTRAS.keys()
    assert not {
        name
        for name in third
        if not names[EXTRAS.get(name, "")].intersection(
            map(canonicalize_name, distributions[name])
        )
    }


def test_what_stands_between_the_edges_touches_no_disk_and_no_process():
    hidden = {"open", "print", "input", "eval", "exec", "__import__"}
    wrong = {
        module: touched
        for module in TOOLKIT
        if room(module) in PURE and module not in TOUCHES_DISK
        if (touched := _outside(module) | (calls(module) & hidden))
    }
    assert not wrong


def _outside(module: str) -> set[str]:
    names = imports(module) - {"urllib.parse"}  # which only spells
    return {name.split(".")[0] for name in names} & OUTSIDE


def test_no_value_prints_and_only_cli_exits():
    speaking = {"app", "cli", "commands", "site", "terminal"}
    said = {"print", "click.echo", "click.secho", "sys.stdout.write"}
    ends = {"sys.exit", "os._exit", "exit", "quit"}
    wrong = {
        module: found
        for module in TOOLKIT
        if module != "readerkit.budget.watchdog"  # a process of its own
        if (
            found := calls(module)
            & (
                (set() if room(module) in speaking else said)
                | (set() if room(module) == "cli" else ends)
            )
        )
    }
    assert not wrong


def test_commands_are_subcommands_and_their_options():
    without = {
        module
        for module in TOOLKIT
        if room(module) == "commands"
        and module != "readerkit.commands"
        and not module.endswith("options")
        and not calls(module) & {"click.command", "click.group"}
        and not _decorated(module)
    }
    assert not without


def _decorated(module: str) -> bool:
    """Whether a function of the module is a command or a group of them."""
    return any(
        ast.unparse(mark).partition("(")[0].endswith((".command", ".group"))
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.FunctionDef)
        for mark in node.decorator_list
    )


def test_no_import_hides_in_a_function_to_dodge_a_cycle():
    late = {
        module: found
        for module in TOOLKIT
        if room(module) not in LATE_ROOMS
        if (
            found := {
                name
                for name in imports(module) - imports(module, top_level=True)
                if name.startswith("readerkit")
            }
            - LATE
        )
    }
    assert not late


def test_a_class_name_means_one_thing():
    places = defaultdict(list)
    for module in MODULES:
        for node in parsed(module).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module)
    assert len(TWICE) <= 7
    assert not {
        name: found
        for name, found in places.items()
        if len(found) > 1 and name not in TWICE
    }


def test_a_name_of_words_means_one_list_of_them():
    places = defaultdict(list)
    for module in TOOLKIT:
        for node in parsed(module).body:
            if isinstance(node, ast.Assign) and _is_named_type(node.value):
                places[ast.unparse(node.targets[0])].append(module)
    assert not {name: found for name, found in places.items() if len(found) > 1}


def _is_named_type(value: ast.expr) -> bool:
    """Whether it is a list of words, or stands for any command."""
    text = ast.unparse(value)
    return text.startswith(("Literal[", "TypeVar('Command'"))


@pytest.mark.parametrize("value", [86_400, b"\xef\xbb\xbf"], ids=["day", "mark"])
def test_what_has_a_name_is_written_once(value):
    """The seconds of a day; the mark of byte order before a text."""
    writes = [
        module
        for module in TOOLKIT
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Constant) and node.value == value
    ]
    assert len(writes) == 1


def test_a_file_of_the_toolkit_is_read_in_one_sitting():
    lines = {
        name: path.read_text("utf-8").count("\n") for name, path in TOOLKIT.items()
    }
    assert not {n: count for n, count in lines.items() if count > 350}.keys() ^ LONGER


def test_benchmarks_and_tools_import_names_that_are_there():
    """Nobody runs them for weeks, and a name that moved would end them at once."""
    missing = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.module}.{alias.name}"
        for folder in ("benchmarks", "tools")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.ImportFrom) and node.module in MODULES
        for alias in node.names
        if alias.name not in _names_of(node.module)
        and f"{node.module}.{alias.name}" not in MODULES
    ]
    assert not missing


def _names_of(module: str) -> set[str]:
    """Return the names that a module's own statements bind."""
    bound = set[str]()
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {alias.asname or alias.name for alias in node.names}
    return bound


def test_every_module_says_what_it_is_for():
    assert not [module for module in MODULES if not ast.get_docstring(parsed(module))]
