"""``drift --spans``: rows of a file carried from one tree to another."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from readerkit.anchors.drift.asked_spans import (
    AskedSpan,
    answers,
    asked_twice,
    parse_rows,
)
from readerkit.anchors.drift.engine import carry
from readerkit.anchors.drift.verdict import Carried
from readerkit.app.library import warn
from readerkit.app.revisions import CommitTree, FolderTree, open_tree
from readerkit.errors import WrongUseError
from readerkit.wording.numbers import counted

MAX_SPANS_BYTES = 200_000_000
MAX_PROBLEMS = 20
"""Rows that are no rows which are named one by one."""


def carry_rows(file: Path, old: str, new: str) -> tuple[list[str], list[str]]:
    """Return a line of JSON for each row of a file, and one for each that is none.

    Raises:
        ReaderkitError: a file that cannot be read.
        SourceError: a tree that is not there.
    """
    rows, bad = parse_rows(_read(file))
    if twice := asked_twice(rows):  # each is answered, in the order of the rows
        shown = ", ".join(map(repr, twice[:3])) + (", …" if twice[3:] else "")
        warn(
            f"{file}: {counted(len(twice), 'id')} of more than one row: got {shown}, "
            "expected an id of its own for each, to tell its answer by"
        )
    verdicts = carry_between(rows, old, new) if rows else []
    problems = [f"{file}:{b.line}: {b.problem}" for b in bad[:MAX_PROBLEMS]]
    if more := len(bad) - len(problems):
        problems.append(f"{file}: and {counted(more, 'more row')} of no use")
    return [*answers(rows, verdicts)], problems


def carry_between(rows: list[AskedSpan], old: str, new: str) -> list[Carried]:
    """Return where each row's span of one revision stands in another.

    Raises:
        SourceError: a revision that is not there.
    """
    with open_tree(old) as before, open_tree(new) as after:
        _preload((before, after), {row.span.path for row in rows})
        return carry([row.span for row in rows], before, after)


def _preload(trees: Iterable[FolderTree | CommitTree], paths: Iterable[str]) -> None:
    wanted = [*paths]
    for tree in trees:
        if isinstance(tree, CommitTree):
            tree.preload(wanted)


def _read(file: Path) -> bytes:
    try:
        if file.is_dir():
            raise WrongUseError(
                f"--spans: got the folder {file}, expected a file of JSON lines"
            )
        with file.open("rb") as opened:
            data = opened.read(MAX_SPANS_BYTES + 1)
    except OSError as error:
        raise WrongUseError(
            f"--spans: cannot read {file}: {error.strerror or error}"
        ) from None
    if len(data) > MAX_SPANS_BYTES:
        most = f"expected at most {MAX_SPANS_BYTES:,}"
        raise WrongUseError(f"--spans: got more bytes in {file}, {most}")
    return data
