"""How long a book of 1,000 notes over 5,000 files takes, and how much memory.

    .venv/bin/python benchmarks/large_book/run.py [--cache DIR] [--keep DIR]

Each row is a command as a person types it, by the clock on the wall; its memory is the
sum over its processes, looked at fifty times a second.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from code_of import repository  # noqa: E402
from large_book import write_book  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--cache", type=Path, default=Path.home() / ".cache" / "readerkit-bench"
    )
    parser.add_argument("--keep", type=Path, help="keep the books there")
    options = parser.parse_args()
    print(f"{platform.platform()}, Python {platform.python_version()}, ", end="")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print("| what | by the clock | of processor | memory |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        top = options.keep or Path(folder)
        os.environ["READERKIT_CACHE"] = str(top / "cache")
        os.environ["READERKIT_DATA"] = str(top / "data")
        _small(top / "small", options.cache)
        _large(top / "large", options.cache)


def _large(root: Path, cache: Path) -> None:
    if not root.exists():
        paths = repository(root, cache)
        write_book(root, paths)
        print(f"{len(paths):,} files: {_kinds(paths)}")
    check = ["annotate", "--check"]
    _row("check, nothing remembered", root, check, before=_forget)
    _row("check again", root, check)
    _row("check, a line added to a file with a note", root, check, before=_add_a_line)
    _row("site build, nothing remembered", root, ["site", "build"], before=_forget)
    _row("site build again", root, ["site", "build"])


def _small(root: Path, cache: Path) -> None:
    if not root.exists():
        write_book(root, repository(root, cache, 500), 100)
    check = ["annotate", "--check"]
    _row("500 files, 100 notes: check, nothing remembered", root, check, before=_forget)
    _row("500 files, 100 notes: check as a hook, again", root, check)


def _row(
    what: str,
    root: Path,
    words: list[str],
    before: Callable[[Path], None] | None = None,
) -> None:
    times, cpus, peaks = [], [], []
    for _ in range(3):
        if before:
            before(root)
        seconds, cpu, peak = measured([*words, "--book", "book"], root)
        times.append(seconds)
        cpus.append(cpu)
        peaks.append(peak)
    middle = sorted(times)[1]
    cpu, memory = sorted(cpus)[1], max(peaks) / 1e6
    row = f"| {what} | {middle:.1f} s | {cpu:.1f} s | {memory:,.0f} MB |"
    print(row, flush=True)


def measured(words: list[str], root: Path) -> tuple[float, float, int]:
    """Return seconds by the clock and of processor, and the most bytes of a command."""
    started, spent = time.perf_counter(), os.times()
    command = [sys.executable, "-m", "readerkit", *words]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL) as process:
        peak = [0]
        watcher = threading.Thread(target=_watch, args=(process, peak))
        watcher.start()
        code = process.wait()
        watcher.join()
    if code:
        raise SystemExit(f"{' '.join(words)}: exit {code}")
    after = os.times()
    cpu = (
        after.children_user
        - spent.children_user
        + after.children_system
        - spent.children_system
    )
    return time.perf_counter() - started, cpu, peak[0]


def _watch(process: subprocess.Popen[bytes], peak: list[int]) -> None:
    while process.poll() is None:
        peak[0] = max(peak[0], sum(map(_bytes, _family(process.pid))))
        time.sleep(0.02)


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    except OSError:
        return
    for child in children:
        yield from _family(int(child))


def _bytes(pid: int) -> int:
    """Return what a process holds; what several share counts a part for each."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _forget(root: Path) -> None:
    """Remove what is remembered between runs, and the site."""
    for folder in (Path(os.environ["READERKIT_CACHE"]), root / "book" / "build"):
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def _add_a_line(root: Path) -> None:
    path = next(p for p in sorted(root.rglob("*.py")) if p.stat().st_size)
    path.write_bytes(path.read_bytes() + b"\n")


def _kinds(paths: list[str]) -> str:
    counts = Counter(Path(path).suffix for path in paths).most_common()
    return ", ".join(f"{count:,} {kind}" for kind, count in counts)


if __name__ == "__main__":
    main()
