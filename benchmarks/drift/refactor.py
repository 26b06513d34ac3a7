"""Refactorings of real files, made here, so that where each line went is known.

A file is a list of lines with a mark each: where the line stood. A refactoring moves,
edits and adds lines, and the marks tell afterwards what the truth is.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from history import Traced

Mark = tuple[str, int] | None
Line = tuple[bytes, Mark]
Files = dict[str, list[Line]]

_CALL = re.compile(rb"^(\s*)([\w.]+ = |return )?([\w.]+)\(([^()'\"#]+,[^()'\"#]+)\)$")
_SIMPLE = re.compile(rb"^\s+[\w.\[\]]+ (=|\+=) [^\"'#]*[\w)\]]$|^\s+[\w.]+\([^()]*\)$")
_NAME = re.compile(rb"\b[a-z_]{5,}\b")


def marked(tree: Mapping[str, bytes]) -> Files:
    files: Files = {}
    for path, data in tree.items():
        lines = data.split(b"\n")
        if path.endswith(".py") and b"\0" not in data and len(lines) > 20:
            files[path] = [(line, (path, n)) for n, line in enumerate(lines[:-1], 1)]
    return files


@dataclass
class Definition:
    start: int
    end: int
    is_method: bool
    owner: str


def definitions(lines: list[Line]) -> list[Definition]:
    """Return functions and methods, by positions, decorators included; end left out."""
    try:
        tree = ast.parse(b"\n".join(line for line, _ in lines))
    except (SyntaxError, ValueError):
        return []
    found = []
    for top in tree.body:
        inner = top.body if isinstance(top, ast.ClassDef) else [top]
        for node in inner:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                owner = top.name if isinstance(top, ast.ClassDef) else ""
                end = node.end_lineno or node.lineno
                found.append(Definition(first - 1, end, node is not top, owner))
    return [d for d in found if d.end - d.start >= 3]


# --- refactorings, each on one file and perhaps another -------------------------------


def move_to_file(files: Files, path: str, rng: random.Random) -> None:
    """Take some functions to another file, there or new."""
    tops = [d for d in definitions(files[path]) if not d.is_method]
    for one in sorted(_some(tops, rng, 3), key=lambda d: -d.start):
        taken = files[path][one.start : one.end]
        del files[path][one.start : one.end]
        if rng.random() < 0.4:
            other = f"{path.rpartition('/')[0]}/taken_{rng.randint(1, 99)}.py"
            files.setdefault(other, [(b"import os", None), (b"", None)])
            files[other] += [*taken, (b"", None), (b"", None)]
            continue
        other = rng.choice([*files])
        tops_there = [d for d in definitions(files[other]) if not d.is_method]
        at = rng.choice(tops_there).end if tops_there else len(files[other])
        blank: list[Line] = [(b"", None), (b"", None)]
        files[other][at:at] = [*blank, *taken, *blank]


def reorder(files: Files, path: str, rng: random.Random) -> None:
    """Put a definition in front of another of the same file."""
    every = definitions(files[path])
    for one in _some(every, rng, 2):
        now = definitions(files[path])
        others = [d for d in now if d.owner == one.owner and d.start < one.start]
        if one in now and others:
            taken = files[path][one.start : one.end]
            del files[path][one.start : one.end]
            at = rng.choice(others).start
            files[path][at:at] = [*taken, (b"", None)]


def split_class(files: Files, path: str, rng: random.Random) -> None:
    """Take some methods of a class to a new class, here or in a new file."""
    methods = [d for d in definitions(files[path]) if d.is_method]
    if not methods:
        return
    owner = rng.choice(methods).owner
    chosen = _some([d for d in methods if d.owner == owner], rng, 6)
    head: list[Line] = [(b"", None), (f"class {owner}Part:".encode(), None)]
    taken: list[Line] = []
    for one in sorted(chosen, key=lambda d: -d.start):
        taken = [*files[path][one.start : one.end], (b"", None), *taken]
        del files[path][one.start : one.end]
    if rng.random() < 0.5:
        files[path] += [*head, *taken]
    else:
        files[f"{path[:-3]}_part.py"] = [*head, *taken]


def rename(files: Files, path: str, rng: random.Random) -> None:
    """Give definitions other names, where they stand and wherever they are called."""
    for one in _some(definitions(files[path]), rng, 4):
        _replace_name(files, path, one, rng, only_inside=False)


def rename_variable(files: Files, path: str, rng: random.Random) -> None:
    for one in _some(definitions(files[path]), rng, 4):
        _replace_name(files, path, one, rng, only_inside=True)


def _replace_name(
    files: Files, path: str, one: Definition, rng: random.Random, *, only_inside: bool
) -> None:
    lines = files[path]
    body = lines[one.start : one.end]
    heads = [line for line, _ in body if b"def " in line]
    if not heads:
        return
    if only_inside:
        names = {n for line, _ in body[1:] for n in _NAME.findall(line)}
        names -= {b"return", b"raise", b"import", b"while", b"yield", b"except"}
        if not names:
            return
        name = rng.choice(sorted(names))
        low, high = one.start, one.end
    else:
        name = heads[0].split(b"def ")[1].split(b"(")[0]
        low, high = 0, len(lines)
    new = rng.choice([b"new_", b"own_", b"do_"]) + name.strip(b"_")
    pattern = re.compile(rb"\b" + re.escape(name) + rb"\b")
    for n in range(low, high):
        lines[n] = pattern.sub(new, lines[n][0]), lines[n][1]


def wrap(files: Files, path: str, rng: random.Random) -> None:
    """Put statements under a condition."""
    lines = files[path]
    places = [n for n, (line, _) in enumerate(lines) if _SIMPLE.match(line)]
    for at in sorted(_some(places, rng, 5), reverse=True):
        indent = _indent(lines[at][0])
        count = 1
        while (
            count < 4
            and at + count < len(lines)
            and _SIMPLE.match(lines[at + count][0])
            and _indent(lines[at + count][0]) == indent
        ):
            count += 1
        inner = [(b"    " + line, mark) for line, mark in lines[at : at + count]]
        condition = rng.choice([b"if self.enabled:", b"if not dry_run:", b"with lock:"])
        lines[at : at + count] = [(b" " * indent + condition, None), *inner]


def reflow(files: Files, path: str, rng: random.Random) -> None:
    """Put the arguments of calls on lines of their own."""
    lines = files[path]
    places = [n for n, (line, _) in enumerate(lines) if _CALL.match(line)]
    for at in sorted(_some(places, rng, 8), reverse=True):
        line, mark = lines[at]
        found = _CALL.match(line)
        assert found
        indent, target, name, arguments = found.groups()
        parts = [part.strip() for part in arguments.split(b",") if part.strip()]
        rows = [indent + (target or b"") + name + b"("]
        if rng.random() < 0.5:
            rows.append(indent + b"    " + b", ".join(parts))
        else:
            rows += [indent + b"    " + part + b"," for part in parts]
        rows.append(indent + b")")
        lines[at : at + 1] = [(row, mark) for row in rows]


def comment(files: Files, path: str, rng: random.Random) -> None:
    """Change comments, and add some."""
    lines = files[path]
    for n, (line, mark) in enumerate(lines):
        if line.lstrip().startswith(b"# ") and rng.random() < 0.3:
            lines[n] = line.replace(b"# ", b"# Note: ") + b" here", mark
    places = [n for n, (line, _) in enumerate(lines) if _SIMPLE.match(line)]
    for at in sorted(_some(places, rng, 6), reverse=True):
        indent = b" " * _indent(lines[at][0])
        lines[at:at] = [(indent + b"# This has a reason that is told here.", None)]


def delete(files: Files, path: str, rng: random.Random) -> None:
    for one in sorted(_some(definitions(files[path]), rng, 3), key=lambda d: -d.start):
        del files[path][one.start : one.end]


def copy(files: Files, path: str, rng: random.Random) -> None:
    """Repeat a function under another name, further up."""
    tops = [d for d in definitions(files[path]) if not d.is_method]
    if tops:
        one = rng.choice(tops)
        taken: list[Line] = [
            (line, None) for line, _ in files[path][one.start : one.end]
        ]
        taken = [(line.replace(b"def ", b"def other_", 1), None) for line, _ in taken]
        at = rng.choice(tops).start
        files[path][at:at] = [*taken, (b"", None), (b"", None)]


def rename_file(files: Files, path: str, rng: random.Random) -> None:
    folder, _, name = path.rpartition("/")
    files[f"{folder}/inner/new_{name}" if folder else f"new_{name}"] = files.pop(path)


WAYS: dict[str, Callable[[Files, str, random.Random], None]] = {
    "moved to a file": move_to_file,
    "reordered": reorder,
    "class split": split_class,
    "renamed": rename,
    "variable renamed": rename_variable,
    "wrapped": wrap,
    "reflowed": reflow,
    "comment": comment,
    "deleted": delete,
    "copied": copy,
    "file renamed": rename_file,
}


def _some(things: list, rng: random.Random, most: int) -> list:
    return rng.sample(things, min(len(things), rng.randint(1, most)))


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip())


# --- the truth ------------------------------------------------------------------------


def refactored(
    tree: Mapping[str, bytes], rng: random.Random, spans_per_file: int = 12
) -> tuple[dict[str, bytes], list[tuple[str, Traced]]]:
    """Return a tree that was refactored, and spans of the old one with their truth.

    Of each span: what was done to its file last.
    """
    files, before = marked(tree), marked(tree)
    done: dict[str, str] = {}
    for path in rng.sample([*before], len(before)):
        if path not in files:
            continue
        for way in rng.sample([*WAYS], rng.choice([1, 1, 2])):
            if path in files:
                WAYS[way](files, path, rng)
                done[path] = f"{done[path]}, {way}" if path in done else way
    where: dict[Mark, list[tuple[str, int]]] = {}
    for path, lines in files.items():
        for n, (_, mark) in enumerate(lines, 1):
            if mark:
                where.setdefault(mark, []).append((path, n))
    after = {path: data for path, data in tree.items() if path not in before}
    after |= {
        path: b"".join(line + b"\n" for line, _ in lines)
        for path, lines in files.items()
    }
    found = []
    for path, lines in before.items():
        for start, end in _spans(lines, rng, spans_per_file):
            traced = _truth(path, start, end, where, after, tree)
            if traced:
                found.append((done.get(path, "nothing"), traced))
    return after, found


def _spans(lines: list[Line], rng: random.Random, count: int) -> list[tuple[int, int]]:
    found = []
    for one in _some(definitions(lines), rng, max(1, count // 3)):
        found.append((one.start + 1, one.end))
    for _ in range(count):
        start = rng.randint(1, len(lines))
        end = min(len(lines), start + rng.choice([0, 0, 1, 2, 4, 8, 15]))
        ends = lines[start - 1][0], lines[end - 1][0]
        if all(re.search(rb"\w", line) for line in ends):
            found.append((start, end))
    return found


def _truth(
    path: str,
    start: int,
    end: int,
    where: dict[Mark, list[tuple[str, int]]],
    after: Mapping[str, bytes],
    tree: Mapping[str, bytes],
) -> Traced | None:
    old = tree[path].split(b"\n")[start - 1 : end]
    marks = [(path, n) for n in range(start, end + 1) if old[n - start].strip()]
    places = [where.get(mark, []) for mark in marks]
    if not any(places):
        return Traced(path, start, end, path, start, end, "gone")
    if not all(places):
        return None
    homes = {home for place in places for home, _ in place}
    lines = [n for place in places for _, n in place]
    low, high = min(places[0])[1], max(places[-1])[1]
    if len(homes) > 1 or low != min(lines) or high != max(lines):
        return None
    if high - low > 2 * (end - start) + 8:
        return None
    [home] = homes
    new = after[home].split(b"\n")[low - 1 : high]
    edited = b"".join(b"".join(new).split()) != b"".join(b"".join(old).split())
    return Traced(path, start, end, home, low, high, "at", edited)
