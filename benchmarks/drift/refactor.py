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

Mark = tuple[str, int] | None
Line = tuple[bytes, Mark]
Files = dict[str, list[Line]]

KINDS = (".py", ".cpp", ".cu", ".h", ".js", ".c")
_CALL = re.compile(rb"^(\s*)([\w.]+ = |return )?([\w.]+)\(([^()'\"#]+,[^()'\"#]+)\)$")
_SIMPLE = re.compile(rb"^\s+[\w.\[\]]+ (=|\+=) [^\"'#]*[\w)\]]$|^\s+[\w.]+\([^()]*\)$")
_NAME = re.compile(rb"\b[a-z_]{5,}\b")


def marked(tree: Mapping[str, bytes]) -> Files:
    files: Files = {}
    for path, data in tree.items():
        lines = data.split(b"\n")
        if path.endswith(KINDS) and b"\0" not in data and len(lines) > 20:
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
        return _braced(lines)
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


def _braced(lines: list[Line]) -> list[Definition]:
    """Return what begins in the first column and ends with a brace there."""
    found, start = [], -1
    for number, (line, _) in enumerate(lines):
        if start < 0 and re.match(rb"[A-Za-z].*\(", line):
            start = number
        if start >= 0 and line[:1] == b"}":
            found.append(Definition(start, number + 1, False, ""))
            start = -1
        elif not line.strip() or (line.rstrip().endswith(b";") and line[:1].isalpha()):
            start = start if line[:1] in (b"", b" ") and start >= 0 else -1
    return [d for d in found if d.end - d.start >= 3]


# --- refactorings, each on one file and perhaps another -------------------------------


def move_to_file(files: Files, path: str, rng: random.Random) -> None:
    """Take some functions to another file, there or new."""
    tops = [d for d in definitions(files[path]) if not d.is_method]
    for one in sorted(some(tops, rng, 3), key=lambda d: -d.start):
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
    for one in some(every, rng, 2):
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
    chosen = some([d for d in methods if d.owner == owner], rng, 6)
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
    for one in some(definitions(files[path]), rng, 4):
        _replace_name(files, path, one, rng, only_inside=False)


def rename_variable(files: Files, path: str, rng: random.Random) -> None:
    for one in some(definitions(files[path]), rng, 4):
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
    for at in sorted(some(places, rng, 5), reverse=True):
        indent = indent_of(lines[at][0])
        count = 1
        while (
            count < 4
            and at + count < len(lines)
            and _SIMPLE.match(lines[at + count][0])
            and indent_of(lines[at + count][0]) == indent
        ):
            count += 1
        inner = [(b"    " + line, mark) for line, mark in lines[at : at + count]]
        condition = rng.choice([b"if self.enabled:", b"if not dry_run:", b"with lock:"])
        lines[at : at + count] = [(b" " * indent + condition, None), *inner]


def reflow(files: Files, path: str, rng: random.Random) -> None:
    """Put the arguments of calls on lines of their own."""
    lines = files[path]
    places = [n for n, (line, _) in enumerate(lines) if _CALL.match(line)]
    for at in sorted(some(places, rng, 8), reverse=True):
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
    for at in sorted(some(places, rng, 6), reverse=True):
        indent = b" " * indent_of(lines[at][0])
        lines[at:at] = [(indent + b"# This has a reason that is told here.", None)]


def delete(files: Files, path: str, rng: random.Random) -> None:
    for one in sorted(some(definitions(files[path]), rng, 3), key=lambda d: -d.start):
        del files[path][one.start : one.end]


def copy(files: Files, path: str, rng: random.Random) -> None:
    """Repeat a function under another name, further up."""
    tops = [d for d in definitions(files[path]) if not d.is_method]
    if tops:
        one = rng.choice(tops)
        taken: list[Line] = [
            (line, None) for line, _ in files[path][one.start : one.end]
        ]
        first = next(n for n, (line, _) in enumerate(taken) if b"(" in line)
        other = re.sub(rb"(\w+)\(", rb"other_\1(", taken[first][0], count=1)
        taken[first] = other, None
        at = rng.choice(tops).start
        files[path][at:at] = [*taken, (b"", None), (b"", None)]


def repeat(files: Files, path: str, rng: random.Random) -> None:
    """Put some statements into the file once more, word for word."""
    lines = files[path]
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        size = rng.randint(2, 8)
        taken: list[Line] = [(line, None) for line, _ in lines[at : at + size]]
        tops = [d.start for d in definitions(lines) if not d.is_method]
        to = rng.choice(tops or [len(lines)])
        head: list[Line] = [(f"def again_{rng.randint(1, 999)}():".encode(), None)]
        lines[to:to] = [*head, *taken, (b"", None)]


def insert(files: Files, path: str, rng: random.Random) -> None:
    """Put new statements beside old ones, at the ends of what is indented too."""
    lines = files[path]
    places = [n for n, (line, _) in enumerate(lines) if _SIMPLE.match(line)]
    for at in sorted(some(places, rng, 8), reverse=True):
        indent = b" " * indent_of(lines[at][0])
        texts = rng.sample(_NEW_LINES, rng.randint(1, 3))
        where = at + rng.choice([0, 1])
        lines[where:where] = [(indent + text, None) for text in texts]


def delete_lines(files: Files, path: str, rng: random.Random) -> None:
    """Take single statements out."""
    lines = files[path]
    places = [n for n, (line, _) in enumerate(lines) if _SIMPLE.match(line)]
    for at in sorted(some(places, rng, 8), reverse=True):
        del lines[at]


def tweak(files: Files, path: str, rng: random.Random) -> None:
    """Change a number, an operator or a name in single lines."""
    lines = files[path]
    for at in some([*range(len(lines))], rng, 25):
        line, mark = lines[at]
        way = rng.choice(_TWEAKS)
        lines[at] = way(line), mark


def _other_number(line: bytes) -> bytes:
    return re.sub(rb"\b\d+\b", lambda found: found[0] + b"0", line, count=1)


def _other_name(line: bytes) -> bytes:
    return re.sub(rb"(?<=[.(,= ])([a-z_]{4,})(?=[.),])", rb"other_\1", line, count=1)


def _other_sign(line: bytes) -> bytes:
    return line.replace(b" == ", b" >= ").replace(b" and ", b" or ")


def _other_argument(line: bytes) -> bytes:
    return re.sub(rb"\)(:|;|,)?$", rb", strict=True)\1", line, count=1)


_TWEAKS = [_other_number, _other_name, _other_sign, _other_argument]
_NEW_LINES = [
    b"counters.update(seen=1)",
    b"logger.debug(message)",
    b"started = time.monotonic()",
    b"if verbose: report(started)",
    b"check_limits(options)",
]


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
    "repeated": repeat,
    "inserted": insert,
    "lines deleted": delete_lines,
    "tweaked": tweak,
    "file renamed": rename_file,
}


def some(things: list, rng: random.Random, most: int) -> list:
    return rng.sample(things, min(len(things), rng.randint(1, most)))


def indent_of(line: bytes) -> int:
    return len(line) - len(line.lstrip())
