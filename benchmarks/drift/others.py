"""The peers: git's own diff with line arithmetic, difflib, and search for a quotation.

Each gets a span and both trees, and returns a place, or None for "gone". None of them
says that it is unsure.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from history import FileStep, Traced, step_of

Place = tuple[str, int, int] | None
Tree = Mapping[str, bytes]


def by_git(old: Tree, new: Tree, spans: Sequence[Traced]) -> list[Place]:
    """``git diff -M``: both ends moved by the hunks above; inside one, to its edge."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        commits = _commits(root, old, new)
        step = step_of(root, *commits)
    places: list[Place] = []
    for span in spans:
        change = step.get(span.path)
        if change is None:
            places.append((span.path, span.start, span.end))
        elif not change.new_path:
            places.append(None)
        else:
            start = _shifted(change, span.start, down=True)
            end = _shifted(change, span.end, down=False)
            places.append((change.new_path, start, end) if start <= end else None)
    return places


def _commits(root: Path, *trees: Tree) -> list[str]:
    """Return the commits of two trees, in a repository made for them."""
    environment = {
        **os.environ,
        **{f"GIT_{who}_{what}": "a@localhost"
           for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }  # fmt: skip

    def run(*arguments: str, data: bytes = b"") -> str:
        command = ["git", "-C", str(root), *arguments]
        done = subprocess.run(
            command, input=data, env=environment, check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    run("init", "-q", "--bare")
    for number, tree in enumerate(trees):
        parts = [f"commit refs/heads/t{number}\ncommitter a <a@b> 0 +0000\ndata 0\n"]
        body = parts[0].encode() + b"\ndeleteall\n"
        for path, data in sorted(tree.items()):
            body += b"M 100644 inline " + path.encode() + b"\n"
            body += b"data %d\n" % len(data) + data + b"\n"
        run("fast-import", "--quiet", data=body)
    return [run("rev-parse", f"t{number}") for number in range(len(trees))]


def _shifted(change: FileStep, line: int, *, down: bool) -> int:
    shift = 0
    for first, olds, new_first, news in change.hunks:
        if line < first:
            break
        if line < first + len(olds):
            inside = new_first + line - first
            last = new_first + len(news) - 1
            return min(inside, last + 1) if down else min(inside, last)
        shift += len(news) - len(olds)
    return line + shift


def by_difflib(old: Tree, new: Tree, spans: Sequence[Traced]) -> list[Place]:
    """``SequenceMatcher`` over the same file: its first and last line that match."""
    maps: dict[str, dict[int, int]] = {}
    places: list[Place] = []
    for span in spans:
        if span.path not in new:
            places.append(None)
            continue
        if span.path not in maps:
            rows = [tree[span.path].split(b"\n") for tree in (old, new)]
            matcher = SequenceMatcher(None, *rows, autojunk=False)
            maps[span.path] = {
                a + k + 1: b + k + 1
                for a, b, size in matcher.get_matching_blocks()
                for k in range(size)
            }
        found = maps[span.path]
        inside = [found[n] for n in range(span.start, span.end + 1) if n in found]
        places.append((span.path, min(inside), max(inside)) if inside else None)
    return places


def by_quote(old: Tree, new: Tree, spans: Sequence[Traced]) -> list[Place]:
    """Search for the words as they were, in the file and then in every other.

    As a TextQuoteSelector does: of several places the one whose 32 letters before and
    behind are most alike, and without one, lines of the file that are most alike.
    """
    return [_quote(old, new, span) for span in spans]


def _quote(old: Tree, new: Tree, span: Traced) -> Place:
    lines = old[span.path].split(b"\n")
    exact = b"\n".join(lines[span.start - 1 : span.end])
    prefix = b"\n".join(lines[: span.start - 1])[-32:]
    suffix = b"\n".join(lines[span.end :])[:32]
    for paths in ([span.path] if span.path in new else [], [*new]):
        best: tuple[float, Place] = (-1.0, None)
        for path in paths:
            text, at = new[path], -1
            while (at := text.find(exact, at + 1)) >= 0:
                before = text[max(0, at - 33) : max(0, at - 1)]
                behind = text[at + len(exact) + 1 : at + len(exact) + 33]
                like = _like(prefix, before) + _like(suffix, behind)
                first = text.count(b"\n", 0, at) + 1
                place = path, first, first + exact.count(b"\n")
                best = max(best, (like, place), key=lambda pair: pair[0])
        if best[1]:
            return best[1]
    return _nearest(exact, new.get(span.path), span)


def _nearest(exact: bytes, text: bytes | None, span: Traced) -> Place:
    if text is None:
        return None
    rows, size = text.split(b"\n"), span.end - span.start + 1
    wanted = set(exact.split(b"\n"))
    scores = [
        len(wanted & {*rows[n : n + size]}) for n in range(max(1, len(rows) - size))
    ]
    best = max(scores)
    first = scores.index(best) + 1
    return (span.path, first, first + size - 1) if best * 2 > len(wanted) else None


def _like(one: bytes, other: bytes) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
