"""Every row of the benchmarks at another commit and here, side by side, in one run.

    make bench BASE=COMMIT
    .venv/bin/python benchmarks/beside.py COMMIT annotate --rows=--help --rounds 5

Each tree runs its own scripts on its own code, in turn; what is compared are the
numbers of the tables that they print, each the median of the rounds.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
Row = tuple[str, str, int]
"""What it is of, its column, and which of those that are told alike it is."""


def main() -> None:
    parser = argparse.ArgumentParser(description="The benchmarks, before and after.")
    parser.add_argument("base", metavar="COMMIT", help="what is compared with")
    known = sorted(path.parent.name for path in HERE.glob("benchmarks/*/run.py"))
    parser.add_argument("benchmarks", nargs="*", default=["annotate", "site"])
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--rows", default="", help="only rows that say this")
    args = parser.parse_args()
    if unknown := set(args.benchmarks) - {*known}:
        parser.error(f"unknown: {', '.join(unknown)}; expected some of {known}")
    with worktree(args.base) as base:
        print("| what | column | before | now | now / before |\n|---|---|---|---|---|")
        for name in args.benchmarks:
            before: dict[Row, list[float]] = defaultdict(list)
            now: dict[Row, list[float]] = defaultdict(list)
            for place in range(args.rounds):
                turns = [(base, before), (HERE, now)]
                for tree, found in turns if place % 2 else reversed(turns):
                    for row, value in numbers(printed(tree, name, args.rows)):
                        found[row].append(value)
            for row in now | before:
                if args.rows in row[0]:
                    print(beside(row, before[row], now[row]), flush=True)


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Yield a folder with the files of a commit; it is removed afterwards."""
    git = ["git", "-C", str(HERE), "worktree"]
    with tempfile.TemporaryDirectory(prefix="readerkit-before-") as folder:
        tree = Path(folder, "tree")
        subprocess.run([*git, "add", "-q", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def printed(tree: Path, benchmark: str, rows: str) -> str:
    """Return what a tree's own script prints; that of an old one knows no rows."""
    script = tree / "benchmarks" / benchmark / "run.py"
    command = [sys.executable, str(script)]
    if rows and "--rows" in script.read_text("utf-8"):
        command.append(f"--rows={rows}")
    env = {**os.environ, "PYTHONPATH": str(tree)}
    run = subprocess.run(command, cwd=tree, env=env, stdout=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(f"{script}: exit {run.returncode}")
    return run.stdout


def numbers(text: str) -> Iterator[tuple[Row, float]]:
    """Yield each number of the Markdown tables in a text, by its row and column.

    Rows are the same where their words are: what they count may have grown.
    """
    columns: list[str] = []
    seen: dict[tuple[str, str], int] = defaultdict(int)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if set(below) == {"|", "-"}:
            columns = cells
        elif set(line) != {"|", "-"}:
            values = [number(cell) for cell in cells]
            words = "" if values[0] is not None else re.sub(r"\d[\d,.]*", "#", cells[0])
            for column, value in zip(columns, values, strict=False):
                if value is not None:
                    yield (words, column, seen[words, column]), value
                    seen[words, column] += 1


def number(cell: str) -> float | None:
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None


def beside(row: Row, before: list[float], now: list[float]) -> str:
    shown = [
        f"{statistics.median(each):,.4g}" if each else "" for each in (before, now)
    ]
    old = statistics.median(before) if before else 0
    ratio = f"{statistics.median(now) / old:.2f}" if old and now else ""
    return f"| {row[0]} | {row[1]} | {' | '.join(shown)} | {ratio} |"


if __name__ == "__main__":
    main()
