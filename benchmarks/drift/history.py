"""Where spans really went: a history walked commit by commit, each step a small one.

Nothing here is shared with the engine that is measured. A step is git's own diff
(histogram, -M). A line outside of its hunks moved by arithmetic; inside one, an edited
line is the one new line that is clearly like it; a span that vanished whole is where
the same step added the same lines, once; what is none of that is dropped, not guessed.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache
from itertools import pairwise
from pathlib import Path

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class Traced:
    """A span at the start of a history, and where it is at the end."""

    path: str
    start: int
    end: int
    to_path: str
    to_start: int
    to_end: int
    state: str = "at"
    """at, gone, or unclear: then it is not used."""
    edited: bool = False


def git(repository: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


@dataclass
class FileStep:
    """What one commit did to one file."""

    new_path: str
    hunks: list[tuple[int, list[bytes], int, list[bytes]]]
    """First old line, the old lines, first new line, the new lines."""


def step_of(repository: Path, old: str, new: str) -> dict[str, FileStep]:
    """Return what changed between two commits, by the old path."""
    output = git(
        repository, "diff", "--histogram", "-M", "-U0", "--no-color", "--no-ext-diff",
        "-l0", "--src-prefix=a/", "--dst-prefix=b/", old, new,
    )  # fmt: skip
    files: dict[str, FileStep] = {}
    step: FileStep | None = None
    hunk = None
    old_path = ""
    for line in output.split(b"\n"):
        if line.startswith(b"diff --git "):
            step = FileStep("", [])
            old_path = ""
            hunk = None
        elif step is not None and hunk is None and line.startswith(b"rename from "):
            old_path = line[12:].decode()
            files[old_path] = step
        elif step is not None and hunk is None and line.startswith(b"rename to "):
            step.new_path = line[10:].decode()
        elif step is not None and hunk is None and line.startswith(b"--- "):
            name = line[4:].split(b"\t")[0].decode()
            old_path = name[2:] if name.startswith("a/") else ""
        elif step is not None and hunk is None and line.startswith(b"+++ "):
            name = line[4:].split(b"\t")[0].decode()
            step.new_path = name[2:] if name.startswith("b/") else ""
            files[old_path or f"\0{step.new_path}"] = step
        elif found := _HUNK.match(line):
            os, on, ns, nn = (int(g) if g else 1 for g in found.groups())
            hunk = (os if on else os + 1, [], ns if nn else ns + 1, [])
            assert step is not None
            step.hunks.append(hunk)
        elif hunk is not None and line.startswith(b"-"):
            hunk[1].append(line[1:])
        elif hunk is not None and line.startswith(b"+"):
            hunk[3].append(line[1:])
    return files


def added_lines(step: dict[str, FileStep]) -> dict[bytes, list[tuple[str, int]]]:
    found: dict[bytes, list[tuple[str, int]]] = defaultdict(list)
    for each in step.values():
        for _, _, first, lines in each.hunks:
            for n, line in enumerate(lines):
                if line.strip():
                    found[line.strip()].append((each.new_path, first + n))
    return found


def _image(line: int, step: FileStep) -> int | str:
    """Return where a line is now: a number, "deleted", or "unclear"."""
    shift = 0
    for first, olds, new_first, news in step.hunks:
        if line < first:
            break
        if line < first + len(olds):
            if not news:
                return "deleted"
            return _edited(line - first, olds, new_first, news)
        shift += len(news) - len(olds)
    return line + shift


def _like(one: bytes, other: bytes) -> float:
    a, b = one.split(), other.split()
    text_a = b" ".join(a).decode("latin-1")
    text_b = b" ".join(b).decode("latin-1")
    return SequenceMatcher(None, text_a, text_b, autojunk=False).ratio()


def _edited(at: int, olds: list[bytes], new_first: int, news: list[bytes]) -> int | str:
    if not olds[at].strip() or len(olds) * len(news) > 900:
        return "unclear"
    likes = [_like(olds[at], new) for new in news]
    best = max(likes)
    j = likes.index(best)
    others = max((v for n, v in enumerate(likes) if n != j), default=0.0)
    back = max(
        (_like(old, news[j]) for n, old in enumerate(olds) if n != at), default=0.0
    )
    least = 0.4 if len(olds) == len(news) == 1 else 0.65
    if best >= least and others < best - 0.12 and back < best - 0.12:
        return new_first + j
    if best < 0.3:
        return "deleted"
    return "unclear"


def advance(
    span: Traced,
    step: dict[str, FileStep],
    added: dict[bytes, list[tuple[str, int]]],
    text: list[bytes],
) -> Traced:
    """Return a span after one step; ``text`` is its lines before it."""
    change = step.get(span.to_path)
    if change is None:
        return span
    if not change.new_path:
        return _moved(span, added, text)
    images = [_image(n, change) for n in range(span.to_start, span.to_end + 1)]
    places = [i for i in images if isinstance(i, int)]
    significant = [n for n, line in enumerate(text) if line.strip()]
    if not any(isinstance(images[n], int) for n in significant):
        if all(images[n] == "deleted" for n in significant):
            return _moved(span, added, text)
        return replace(span, state="unclear")
    kept = sum(isinstance(images[n], int) for n in significant)
    if kept * 2 < len(significant):
        return replace(span, state="unclear")
    # An exact place needs both ends: where one is gone, or may be either of two lines,
    # nobody can say what exact is.
    first, last = significant[0], significant[-1]
    if not isinstance(images[first], int) or not isinstance(images[last], int):
        return replace(span, state="unclear")
    grown = max(places) - min(places) + 1
    if grown > 2 * len(text) + 4:  # something else came between: it was split
        return replace(span, state="unclear")
    return replace(
        span, to_path=change.new_path, to_start=min(places), to_end=max(places)
    )


def _moved(
    span: Traced, added: dict[bytes, list[tuple[str, int]]], text: list[bytes]
) -> Traced:
    lines = [line.strip() for line in text]
    significant = [line for line in lines if line]
    there = [line for line in significant if line in added and len(line) > 8]
    if not there:
        return replace(span, state="gone")
    first = next(n for n, line in enumerate(lines) if line)
    last = max(n for n, line in enumerate(lines) if line)
    found = []
    where = {place for line in significant for place in added.get(line, [])}
    for path, at in added.get(lines[first], []):
        if all(
            not lines[n] or ((path, at + n - first) in where
            and (path, at + n - first) in added.get(lines[n], []))
            for n in range(first, last + 1)
        ):  # fmt: skip
            found.append((path, at))
    weight = sum(len(line) for line in significant)
    if len(found) == 1 and weight > 30 and first == 0 and last == len(lines) - 1:
        path, at = found[0]
        return replace(span, to_path=path, to_start=at, to_end=at + last)
    return replace(span, state="unclear")


class Texts:
    """The lines of files at revisions, read once."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository
        self._known: dict[tuple[str, str], list[bytes]] = {}

    def __call__(self, revision: str, path: str) -> list[bytes]:
        key = revision, path
        if key not in self._known:
            data = git(self.repository, "show", f"{revision}:{path}")
            lines = data.split(b"\n")
            self._known[key] = lines[:-1] if lines[-1] == b"" else lines
        return self._known[key]


def _balance(lines: list[bytes]) -> int:
    text = b"".join(lines)
    opened = sum(map(text.count, (b"(", b"[", b"{")))
    return opened - sum(map(text.count, (b")", b"]", b"}")))


def _holds(new: list[bytes], old: list[bytes], span: Traced) -> bool:
    """Tell whether most of a span is in a file again, taken out and put back."""
    there = {line.strip() for line in new}
    rows = [line.strip() for line in old[span.start - 1 : span.end] if line.strip()]
    return 2 * sum(row in there for row in rows) > len(rows)


def ends_alike(old: list[bytes], new: list[bytes], span: Traced) -> bool:
    """Tell whether a span that is one statement is one still, by Python's parser.

    A walk by lines does not see that a statement got more lines at its end.
    """
    was, now = statements(b"\n".join(old)), statements(b"\n".join(new))
    is_one = span.end in was.get(span.start, ())
    begins = now.get(span.to_start, ())
    return not is_one or not begins or span.to_end in begins


@cache
def statements(text: bytes) -> dict[int, tuple[int, ...]]:
    """Return where the statements end that begin on each line; none of no Python."""
    try:
        nodes = [*ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError):
        return {}
    found: dict[int, tuple[int, ...]] = {}
    for node in nodes:
        if isinstance(node, ast.stmt):
            end = node.end_lineno or node.lineno
            found[node.lineno] = (*found.get(node.lineno, ()), end)
    return found


@cache
def names_at(repository: Path, revision: str) -> frozenset[str]:
    """Return the paths of a revision."""
    output = git(repository, "ls-tree", "-r", "-z", "--name-only", revision)
    return frozenset(output.decode("utf-8", "surrogateescape").split("\0"))


def trace(repository: Path, revisions: list[str], spans: list[Traced]) -> list[Traced]:
    """Carry spans from the first to the last of some revisions, one step at a time."""
    texts = Texts(repository)
    now = spans
    for old, new in pairwise(revisions):
        step = step_of(repository, old, new)
        added = added_lines(step)
        carried = []
        for span in now:
            if span.state != "at" or span.to_path not in step:
                carried.append(span)
                continue
            text = texts(old, span.to_path)[span.to_start - 1 : span.to_end]
            carried.append(advance(span, step, added, text))
        now = carried
    first, last = revisions[0], revisions[-1]
    done = []
    for span in now:
        if span.state == "at":
            old_text = texts(first, span.path)[span.start - 1 : span.end]
            new_text = texts(last, span.to_path)[span.to_start - 1 : span.to_end]
            texts_of = texts(first, span.path), texts(last, span.to_path)
            edited = [b"".join(x.split()) for x in old_text] != [
                b"".join(x.split()) for x in new_text
            ]
            span = replace(span, edited=edited)
            # A call that went over more lines ends where its brackets close, which a
            # walk by lines does not see.
            if edited and (
                _balance(old_text) != _balance(new_text)
                or not ends_alike(*texts_of, span)
            ):
                span = replace(span, state="unclear")
        elif span.state == "gone":
            came_back = span.path in names_at(repository, last) and _holds(
                texts(last, span.path), texts(first, span.path), span
            )
            span = replace(span, state="unclear") if came_back else span
        done.append(span)
    return done
