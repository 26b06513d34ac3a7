"""Where the spans of a tree went that was refactored here: told by its marks."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from history import Traced
from refactor import WAYS, Line, Mark, definitions, indent_of, marked, some

_LONGER = (0, 0, 1, 2, 4, 8, 15, 25, 39)
"""By so many lines a span ends further down; it may begin and end anywhere."""


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
    known = {
        path: {n for n, (_, mark) in enumerate(lines, 1) if mark}
        for path, lines in files.items()
    }
    after = {path: data for path, data in tree.items() if path not in before}
    after |= {
        path: b"".join(line + b"\n" for line, _ in lines)
        for path, lines in files.items()
    }
    found = []
    for path, lines in before.items():
        for start, end in _spans(lines, rng, spans_per_file):
            traced = _truth(path, start, end, where, after, tree, known)
            if traced:
                found.append((done.get(path, "nothing"), traced))
    return after, found


def _spans(lines: list[Line], rng: random.Random, count: int) -> list[tuple[int, int]]:
    found = []
    for one in some(definitions(lines), rng, max(1, count // 3)):
        found.append((one.start + 1, one.end))
    for _ in range(count):
        start = rng.randint(1, len(lines))
        end = min(len(lines), start + rng.choice(_LONGER))
        if any(re.search(rb"\w", line) for line, _ in lines[start - 1 : end]):
            found.append((start, end))
    return found


def _truth(
    path: str,
    start: int,
    end: int,
    where: dict[Mark, list[tuple[str, int]]],
    after: Mapping[str, bytes],
    tree: Mapping[str, bytes],
    known: Mapping[str, set[int]],
) -> Traced | None:
    old = tree[path].split(b"\n")[start - 1 : end]
    ends = (start, end)
    marks = [
        (path, n) for n in range(start, end + 1) if old[n - start].strip() or n in ends
    ]
    places = [where.get(mark, []) for mark in marks]
    both = zip(marks, places, strict=True)
    says = [place for (_, n), place in both if old[n - start].strip()]
    if not any(says):
        return Traced(path, start, end, path, start, end, "gone")
    if not places[0] or not places[-1] or 2 * sum(map(bool, says)) < len(says):
        return None
    homes = {home for place in places for home, _ in place}
    lines = [n for place in places for _, n in place]
    low, high = min(places[0])[1], max(places[-1])[1]
    if len(homes) > 1 or low != min(lines) or high != max(lines):
        return None
    if high - low > 2 * (end - start) + 8:
        return None
    [home] = homes
    every = after[home].split(b"\n")
    new = every[low - 1 : high]
    if _may_have_grown(new, every[high:], high, known[home]):
        return None
    edited = b"".join(b"".join(new).split()) != b"".join(b"".join(old).split())
    return Traced(path, start, end, home, low, high, "at", edited)


def _may_have_grown(
    new: list[bytes], behind: list[bytes], high: int, known: set[int]
) -> bool:
    """Tell whether new lines stand right behind a place, indented into it.

    Whether those are of the same statement, each reader says otherwise.
    """
    if high + 1 in known or not behind or not behind[0].strip():
        return False
    return indent_of(behind[0]) > min(indent_of(line) for line in new if line.strip())
