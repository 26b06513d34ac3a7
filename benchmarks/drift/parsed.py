"""A truth that no diff was asked for: what the parser of Python says is the same.

Two releases are parsed. A function that has the same syntax tree in both, and in no
other place of either, is the same function, wherever it went; each of its statements is
the one of the same number. A function of the same file and name, and another tree, is
the same one, edited: its ends are known, and those of a statement in it that is there
once in both, or of which only the body, or the value that is given to a name, is
another. Where all lines of it are there still, and more behind them, lines alone do not
tell whether it grew: that is left out. A function is gone where nothing is called so,
and hardly a statement of it is anywhere.
"""

from __future__ import annotations

import ast
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from history import Traced

Tree = Mapping[str, bytes]
Definition = ast.FunctionDef | ast.AsyncFunctionDef
_LEAST = 4
"""Statements that make a function known by its tree alone."""
_MAX = 2_500
_LEFT = 0.1
"""Of a function that is gone, at most so much is anywhere."""


@dataclass
class Parsed:
    """A release: its functions, and how often each tree and statement is in it."""

    functions: dict[tuple[str, str], list[Definition]] = field(default_factory=dict)
    by_dump: dict[str, list[tuple[str, Definition]]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    statements: Counter[str] = field(default_factory=Counter)


def parsed_truth(old: Tree, new: Tree, *, seed: int = 11) -> list[Traced]:
    """Return spans of the files that changed or went, with where they are."""
    before, after = _parse(old), _parse(new)
    found: list[Traced] = []
    for (path, name), nodes in before.functions.items():
        if old[path] == new.get(path) or len(nodes) != 1:
            continue
        found += _of_one(path, name, nodes[0], before, after)
    found = [each for each in found if not _only_grew(each, old, new)]
    rng = random.Random(seed)
    kinds: dict[tuple[bool, bool], list[Traced]] = defaultdict(list)
    for each in found:
        kinds[each.edited, each.state == "gone"].append(each)
    return [
        t for group in kinds.values() for t in rng.sample(group, min(_MAX, len(group)))
    ]


def _only_grew(span: Traced, old: Tree, new: Tree) -> bool:
    """Tell whether every line of a span is there as it was, and more behind it."""
    if span.state == "gone" or not span.edited:
        return False
    was = old[span.path].split(b"\n")[span.start - 1 : span.end]
    now = new[span.to_path].split(b"\n")[span.to_start - 1 : span.to_end]
    return len(now) > len(was) and [*map(_key, was)] == [*map(_key, now[: len(was)])]


def _key(line: bytes) -> bytes:
    return b"".join(line.split())


def _parse(tree: Tree) -> Parsed:
    found = Parsed()
    for path in sorted(tree):
        if not path.endswith(".py"):
            continue
        try:
            module = ast.parse(tree[path])
        except (SyntaxError, ValueError):
            continue
        for name, node in _functions(module, ""):
            found.functions.setdefault((path, name), []).append(node)
            found.by_dump.setdefault(ast.dump(node), []).append((path, node))
            found.names.add(node.name)
        found.statements.update(
            ast.dump(node) for node in ast.walk(module) if isinstance(node, ast.stmt)
        )
    return found


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Definition]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield prefix + child.name, child
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _of_one(
    path: str, name: str, node: Definition, before: Parsed, after: Parsed
) -> Iterator[Traced]:
    """Yield what is known of a function and its statements."""
    dump = ast.dump(node)
    count = sum(isinstance(each, ast.stmt) for each in ast.walk(node))
    twins = after.by_dump.get(dump, [])
    if count >= _LEAST and len(twins) == 1 and len(before.by_dump[dump]) == 1:
        [(to, twin)] = twins
        yield _span(path, node, to, twin)
        pairs = zip(_inner(node), _inner(twin), strict=True)
        yield from (_span(path, a, to, b) for a, b in pairs)
        return
    here = after.functions.get((path, name), [])
    if len(here) == 1 and not twins:
        yield _span(path, node, path, here[0], edited=True)
        yield from _of_edited(path, node, here[0])
    elif not here and not twins and node.name not in after.names and count >= _LEAST:
        dumps = [ast.dump(each) for each in _inner(node)]
        left = sum(after.statements[each] > 0 for each in dumps)
        if left <= _LEFT * len(dumps):
            end = node.end_lineno or node.lineno
            yield Traced(path, node.lineno, end, path, node.lineno, end, state="gone")


def _inner(node: ast.AST) -> list[ast.stmt]:
    return [n for n in ast.walk(node) if isinstance(n, ast.stmt) and n is not node]


def _of_edited(path: str, old: Definition, new: Definition) -> Iterator[Traced]:
    """Yield the statements of an edited function that are surely one of the new."""
    same = _paired(old, new, ast.dump)
    yield from (_span(path, a, path, b) for a, b in same)
    done = {id(node) for node, _ in same}
    for a, b in _paired(old, new, _head):
        if id(a) not in done and ast.dump(a) != ast.dump(b):
            yield _span(path, a, path, b, edited=True)


def _paired(old: Definition, new: Definition, key) -> list[tuple[ast.stmt, ast.stmt]]:  # type: ignore[no-untyped-def]
    """Return the statements with a key that one of each has."""
    sides = []
    for node in (old, new):
        by_key: dict[str, list[ast.stmt]] = defaultdict(list)
        for each in _inner(node):
            by_key[key(each)].append(each)
        sides.append({k: v[0] for k, v in by_key.items() if k and len(v) == 1})
    return [(sides[0][k], sides[1][k]) for k in sides[0] if k in sides[1]]


def _head(node: ast.stmt) -> str:
    """Return what a statement is known by whose rest is another; or nothing."""
    if isinstance(node, ast.If | ast.While):
        return f"{type(node).__name__} {ast.dump(node.test)}"
    if isinstance(node, ast.For):
        return f"for {ast.dump(node.target)} {ast.dump(node.iter)}"
    if isinstance(node, ast.With):
        return f"with {[ast.dump(item) for item in node.items]}"
    if isinstance(node, ast.Assign):
        return f"set {[ast.dump(target) for target in node.targets]}"
    return ""


def _span(
    path: str, old: ast.stmt, to: str, new: ast.stmt, *, edited: bool = False
) -> Traced:
    ends = old.lineno, old.end_lineno or old.lineno
    there = new.lineno, new.end_lineno or new.lineno
    return Traced(path, *ends, to, *there, edited=edited)
