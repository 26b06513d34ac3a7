"""A mini is read in ten minutes beside upstream: 100 to 260 lines a file."""

import ast
from pathlib import Path

import pytest

import mini_impls
from readerkit.app.mini_names import SAYS

FOLDER = Path(mini_impls.__file__).parent
NO_MINI = {
    "__init__",
    "failures",
    "gpus",
    "launch",
    "limits",
    "machine",
    "model",
    "recorder",
    "run_events",
    "run_memory",
    "run_metrics",
    "run_rates",
    "run_table",
    "run_thin",
    "run_trace",
    "run_watch",
    "run_wrapped",
    "supervise",
    "torchrun",
    "traffic",
    "weights",
}
"""What all of them share, and what starts them."""
FILES = sorted(p.stem for p in FOLDER.glob("*.py") if p.stem not in NO_MINI)


@pytest.mark.parametrize("name", FILES)
def test_a_mini_is_read_in_ten_minutes(name):
    lines = len((FOLDER / f"{name}.py").read_text().splitlines())
    assert 100 <= lines <= 260


SECOND_FILES = {
    "expert_dispatch": "experts",
    "expert_routing": "experts",
    "grouped_queries": "tensor_parallel",
    "ring_attention": "context_parallel",
    "vocab_parallel_loss": "tensor_parallel",
}
"""Those that do not begin with the name of their mini."""
SHARED = {("schedules", "Step"), ("timeline", "Transfer"), ("timeline", "Exchange")}
SHARED |= {("timeline", "Timeline"), ("timeline", "get_inputs"), ("", "schedules")}
SHARED |= {("tensor_parallel", "shard")}
"""What minis take of one another: orders of stages, and how a matrix is cut."""


def mini_of(name):
    name = SECOND_FILES.get(name, name)
    fit = [mini for mini in SAYS if name == mini or name.startswith(f"{mini}_")]
    return max(fit, key=len, default=name)


@pytest.mark.parametrize("name", FILES)
def test_no_mini_imports_another_but_for_its_own_second_files(name):
    tree = ast.parse((FOLDER / f"{name}.py").read_text())
    found = {
        ((node.module or "").removeprefix("mini_impls").removeprefix("."), each.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    others = {
        (module, imported)
        for module, imported in found
        if (other := module or imported) in FILES and mini_of(other) != mini_of(name)
    }
    assert others <= SHARED
