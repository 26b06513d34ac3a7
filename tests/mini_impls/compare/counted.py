"""One rank of a comparison whose upstream counts its own statements, without a trace.

Run as a program, before anything imports torch: every statement of the files asked for
is compiled with a call before it. What is called when is another way to know what ran.
"""

from __future__ import annotations

import ast
import builtins
import json
import sys
from dataclasses import replace
from importlib import machinery
from pathlib import Path

NO_CODE = (ast.Global, ast.Nonlocal, ast.Pass, ast.Try, ast.Import, ast.ImportFrom)
"""Statements without a line of their own, or whose line is of the import."""


def statements(tree):
    """Yield the statements of functions: first line, last line of its head."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in _own(node):
                body = getattr(inner, "body", None)
                end = body[0].lineno - 1 if body else inner.end_lineno
                yield inner, inner.lineno, max(inner.lineno, end)


def _own(function):
    """Yield the statements of a function, but not those of definitions inside it."""
    todo = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.stmt) and not _is_silent(node):
            yield node
        todo += [
            inner
            for inner in ast.iter_child_nodes(node)
            if isinstance(inner, ast.stmt | ast.excepthandler | ast.match_case)
        ]


def _is_silent(node):
    bare = isinstance(node, ast.AnnAssign) and node.value is None
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return bare or text or isinstance(node, NO_CODE)


def count(source, path):
    """Return the code of a file with a call before each statement of its functions."""
    tree = ast.parse(source)
    known = {id(node) for node, _, _ in statements(tree)}
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                setattr(node, field, list(_with_calls(body, known, path)))
    return compile(tree, path, "exec", dont_inherit=True)


def _with_calls(body, known, path):
    for node in body:
        if id(node) in known:
            call = ast.parse(f"__count__({path!r}, {node.lineno})").body[0]
            for made in ast.walk(call):
                ast.copy_location(made, node)
                if hasattr(made, "end_lineno"):
                    made.lineno = made.end_lineno = node.lineno
            yield call
        yield node


class Counting(machinery.SourceFileLoader):
    """Compiles the files asked for with counters."""

    wanted: frozenset[str] = frozenset()
    importing = 0
    """Modules whose import is under way: what they run is not counted."""

    def get_code(self, fullname):
        """Return the module's code."""
        path = self.get_filename(fullname)
        if path not in self.wanted:
            return super().get_code(fullname)
        return count(self.get_data(path), path)

    def exec_module(self, module):
        """Run the module's own code."""
        Counting.importing += 1
        try:
            super().exec_module(module)
        finally:
            Counting.importing -= 1


class Windows:
    """Which statements ran in set-up, and in each watched step."""

    def __init__(self, steps):
        self.ran = [set() for _ in range(1 + steps)]
        self.now = None

    def note(self, path, line):
        """Note a statement."""
        if self.now is not None and not Counting.importing:
            self.ran[self.now].add((path, line))

    def during(self, window, run):
        """Run in a window."""
        self.now = window
        try:
            return run()
        finally:
            self.now = None


def main(rank, world_size, folder, mini, upstream, megatron, *wanted):
    """Run the comparison; write which statements ran in set-up and in each step."""
    Counting.wanted = frozenset(wanted)
    loaders = (
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (Counting, machinery.SOURCE_SUFFIXES),
    )
    sys.path_hooks.insert(0, machinery.FileFinder.path_hook(*loaders))
    sys.path_importer_cache.clear()
    builtins.__count__ = lambda path, line: None  # until there are windows

    import torch
    import torch.distributed as dist

    from mini_impls.compare import rank_worker
    from mini_impls.launch import Rank

    windows = Windows(rank_worker.WATCHED_STEPS)
    builtins.__count__ = windows.note

    class Watcher(rank_worker._Watcher):
        def __init__(self, rank, comparison, places):
            build = comparison.build
            counted = replace(
                comparison, build=lambda *args: windows.during(0, lambda: build(*args))
            )
            super().__init__(rank, counted, places)

        def watched_step(self, name, *args):
            side, window = self.side(name), 1 + len(self.lines[name])
            take = side.step
            side.step = lambda *given: windows.during(window, lambda: take(*given))
            try:
                return super().watched_step(name, *args)
            finally:
                del side.step

    rank_worker._Watcher = Watcher
    torch.set_num_threads(1)
    which, size = int(rank), int(world_size)
    store = dist.FileStore(f"{folder}/store", size)
    dist.init_process_group("gloo", store=store, rank=which, world_size=size)
    itself = Rank(which, size, torch.device("cpu"), dist.group.WORLD)
    place = Path(megatron) if megatron else None
    rank_worker.watch(itself, mini, upstream, rank_worker.MIN_STEPS, place)
    dist.barrier()
    text = json.dumps([sorted(window) for window in windows.ran])
    Path(folder, f"{rank}.json").write_text(text)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
