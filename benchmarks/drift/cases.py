"""What is measured: pairs of revisions, and spans of the old one with their truth.

``TRAIN`` is what the weights are fitted to, ``HELD_OUT`` what is reported: no case is
in both. Spans are of files that changed, of all lengths, whole definitions among them.
"""

from __future__ import annotations

import ast
import io
import random
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from history import Texts, Traced, git, trace
from packaging.version import Version
from parsed import parsed_truth
from refactor import KINDS as REFACTORED_KINDS
from refactored import refactored
from releases import repository

ROOT = Path(__file__).resolve().parents[2]
HISTORIES = {
    "click 8.1.0 to 8.3.0": ("click", "8.1.0", "8.3.0"),
    "rich 10.0 to 12.4": ("rich", "10.0.0", "12.4.4"),
    "rich 12.0 to 13.7": ("rich", "12.0.1", "13.7.1"),
    "pytest 7.0 to 8.0": ("pytest", "7.0.0", "8.0.0"),
    "deepspeed 0.15 to 0.17.2": ("deepspeed", "0.15.0", "0.17.2"),
    "this project, first half": ("", "60", "400"),
    "starlette 0.28 to 0.38": ("starlette", "0.28.0", "0.38.6"),
    "starlette 0.38 to 1.10": ("starlette", "0.38.6", "1.10.0"),
    "jinja2 2.10 to 3.1": ("jinja2", "2.10", "3.1.6"),
    "deepspeed 0.17.2 to 0.19.5": ("deepspeed", "0.17.2", "0.19.5"),
    "pytest 8.0 to 9.2": ("pytest", "8.0.0", "9.2.0"),
    "megatron-core 0.12 to 0.16.1": ("megatron-core", "0.12.0", "0.16.1"),
    "this project, second half": ("", "400", "770"),
}
REFACTORED = {
    "refactored rich": ("rich", "v12.6.0"),
    "refactored click": ("click", "v8.1.7"),
    "refactored deepspeed": ("deepspeed", "v0.16.0"),
    "refactored starlette": ("starlette", "v0.40.0"),
    "refactored jinja2": ("jinja2", "v3.1.2"),
    "refactored megatron-core": ("megatron-core", "v0.14.0"),
}
PARSED = {
    "parsed rich 10.0 to 13.7": ("rich", "v10.0.0", "v13.7.1"),
    "parsed pytest 7.0 to 8.0": ("pytest", "v7.0.0", "v8.0.0"),
    "parsed click 8.1.0 to 8.3.0": ("click", "v8.1.0", "v8.3.0"),
    "parsed megatron-core 0.12 to 0.14": ("megatron-core", "v0.12.0", "v0.14.0"),
    "parsed deepspeed 0.15 to 0.17": ("deepspeed", "v0.15.0", "v0.17.0"),
    "parsed torch 2.9 to 2.11": ("torch", "v2.9.0", "v2.11.0"),
    "parsed megatron-core 0.14 to 0.16.1": ("megatron-core", "v0.14.0", "v0.16.1"),
    "parsed deepspeed 0.17 to 0.19.5": ("deepspeed", "v0.17.0", "v0.19.5"),
    "parsed torch 2.11 to 2.13": ("torch", "v2.11.0", "v2.13.0"),
    "parsed megatron-core 0.12 to 0.16.1": ("megatron-core", "v0.12.0", "v0.16.1"),
    "parsed deepspeed 0.15 to 0.19.5": ("deepspeed", "v0.15.0", "v0.19.5"),
    "parsed torch 2.9 to 2.13": ("torch", "v2.9.0", "v2.13.0"),
    "parsed torch 2.13 to 2.14.1": ("torch", "v2.13.0", "v2.14.1"),
}
TRAIN = [*[*HISTORIES][:6], *[*REFACTORED][:3], *[*PARSED][:6]]
HELD_OUT = [*[*HISTORIES][6:], *[*REFACTORED][3:], *[*PARSED][6:]]
_KINDS = (".py", ".cpp", ".cu", ".h", ".js", ".css", ".html", ".yaml", ".yml")
_LENGTHS = (1, 1, 2, 3, 4, 5, 6, 8, 10, 15, 25)
_SPANS = 2_500


@dataclass(frozen=True)
class Case:
    name: str
    old: dict[str, bytes]
    new: dict[str, bytes]
    truth: list[Traced]
    dropped: int = 0
    """How many spans nobody can say the truth of."""


def cases(name: str, cache: Path) -> Iterator[Case]:
    """Yield the cases of a name."""
    if name in PARSED:
        library, *tags = PARSED[name]
        trees = [read_tree(repository(library, cache), tag) for tag in tags]
        old, new = trees
        yield Case(name, old, new, parsed_truth(old, new))
        return
    if name in REFACTORED:
        library, tag = REFACTORED[name]
        tree = read_tree(repository(library, cache), tag)
        # One of equal files: which of two was refactored, nobody could tell.
        once = {data: path for path, data in tree.items()}
        tree = {p: d for d, p in once.items() if p.endswith(REFACTORED_KINDS)}
        small = len(tree) < 150
        for seed in range(3 if small else 1):
            rng = random.Random(seed * 100 + len(name))
            new, found = refactored(tree, rng, 16 if small else 6)
            yield Case(name, tree, new, [truth for _, truth in found])
        return
    root, revisions = _revisions(*HISTORIES[name], cache)
    spans = _spans(root, revisions[0], revisions[-1])
    traced = trace(root, revisions, spans)
    truth = [each for each in traced if each.state != "unclear"]
    trees = read_tree(root, revisions[0]), read_tree(root, revisions[-1])
    yield Case(name, *trees, truth, len(traced) - len(truth))


def _revisions(
    library: str, first: str, last: str, cache: Path
) -> tuple[Path, list[str]]:
    if not library:
        log = git(ROOT, "log", "--first-parent", "--reverse", "--format=%H")
        return ROOT, log.decode().split()[int(first) : int(last)]
    root = repository(library, cache)
    tags = sorted(git(root, "tag").decode().split(), key=lambda tag: Version(tag[1:]))
    low, high = Version(first), Version(last)
    return root, [tag for tag in tags if low <= Version(tag[1:]) <= high]


def read_tree(root: Path, revision: str) -> dict[str, bytes]:
    data = git(root, "archive", "--format=tar", revision)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = ((m.name, archive.extractfile(m)) for m in archive if m.isfile())
        return {name: opened.read() for name, opened in files if opened}


def _spans(root: Path, old: str, new: str) -> list[Traced]:
    """Return spans of the files that changed or went, as many of each."""
    rng = random.Random(7)
    output = git(
        root, "diff", "--name-only", "--no-renames", "--diff-filter=MD", old, new
    )
    paths = [p for p in output.decode().split("\n") if p.endswith(_KINDS)]
    paths = [path for path in paths if not path.endswith("min.js")]
    rng.shuffle(paths)
    texts, found = Texts(root), []
    per_file = max(4, 1_500 // max(1, len(paths)))
    for path in paths:
        lines = texts(old, path)
        if len(lines) < 5 or max(map(len, lines)) > 2_000:
            continue
        for _ in range(min(per_file, len(lines) // 3)):
            length = rng.choice(_LENGTHS)
            start = rng.randint(1, max(1, len(lines) - length))
            end = min(len(lines), start + length - 1)
            while start <= end and not lines[start - 1].strip():
                start += 1
            while end >= start and not lines[end - 1].strip():
                end -= 1
            if start <= end and any(chr(c).isalnum() for c in lines[start - 1]):
                found.append((path, start, end))
        found += [(path, *ends) for ends in _statements(lines, rng, per_file // 2 + 1)]
    rng.shuffle(found)
    return [Traced(p, a, b, p, a, b) for p, a, b in found[:_SPANS]]


def _statements(
    lines: list[bytes], rng: random.Random, count: int
) -> list[tuple[int, int]]:
    """Return the ends of some statements and definitions; none of what is no Python."""
    try:
        tree = ast.parse(b"\n".join(lines))
    except (SyntaxError, ValueError):
        return []
    ends = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
    ]
    ends = [(a, b) for a, b in ends if b - a < 80]
    return rng.sample(ends, min(count, len(ends)))
