"""How fast the reading site is made, as ratios against peers in the same run.

Prints the table that stands in README.md. Times are CPU seconds of one process, rounds
interleaved, so that a busy moment of the machine falls on both sides; where a reader
waits, it is the clock.
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tree_sitter
import tree_sitter_python
from instrument import one_change
from one_note import one_note
from pycco.main import generate_documentation
from pygments import highlight as pygments_highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from search import one_search
from weight import site_weights

from readerkit.app.library import Library, open_library
from readerkit.site import build as site_build
from readerkit.site.build import BuildCache, make_site
from readerkit.site.inputs import Inputs, find_inputs
from readerkit.system.garbage import uncollected

ROUNDS = 3
PYTHON = tree_sitter.Language(tree_sitter_python.language())
QUERY = tree_sitter.Query(PYTHON, tree_sitter_python.HIGHLIGHTS_QUERY)


def main() -> None:
    library = open_library()
    inputs = find_inputs(None)
    upstream = library.upstream("megatron")
    sources = library.sources(upstream)
    files = {path: sources.read(path) for path in sorted(sources.paths)}
    size = sum(map(len, files.values()))
    print(f"{platform.platform()}, Python {platform.python_version()}, {ROUNDS} rounds")
    print(f"{len(files)} files, {size / 1e6:.1f} MB\n")
    folder = tempfile.TemporaryDirectory()  # pycco reads them itself
    paths = [Path(folder.name) / name for name in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    # One process, as the peers are: other cores are a matter of their own.
    site_build.FEW_BYTES = 1 << 60
    jobs: dict[str, Callable[[], object]] = {
        "site": lambda: megatron_pages(library, inputs),
        "pygments": lambda: pygments(files),
        "pycco": lambda: pycco(paths),
        "parse": lambda: parse_and_capture(files),
    }
    times = measure(jobs)
    for name, seconds in times.items():
        spread = ", ".join(f"{each:.2f}" for each in seconds)
        print(f"{name}: {spread} s of CPU")
    site = statistics.median(times["site"])
    print("\n| what | measured | limit |\n|---|---|---|")
    for peer, limit in (("pygments", "at least 2"), ("pycco", "at least 4")):
        ratio = statistics.median(times[peer]) / site
        what = f"{peer} over all of `megatron/core`, with links and notes"
        print(f"| {what} | {ratio:.2f} | {limit} |")
    ratio = site / statistics.median(times["parse"])
    print(f"| over parse and highlight captures | {ratio:.2f} | at most 2.5 |")
    folder.cleanup()
    nothing_changed()
    one_note()
    one_search()
    one_change()
    site_weights()


def measure(jobs: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            begin = time.process_time()
            job()
            times[name].append(time.process_time() - begin)
    return times


def megatron_pages(library: Library, inputs: Inputs) -> int:
    """Every page of Megatron's files, made from bytes: lines, links, uses, notes."""
    build_cache = BuildCache()
    only = {
        name: upstream
        for name, upstream in library.book.upstreams.items()
        if name == "megatron"
    }
    annotations = {
        name: each
        for name, each in library.book.annotations.items()
        if each.upstream == "megatron"
    }
    book = library.book.__class__(
        only,
        library.book.locks,
        annotations,
        {},
        library.book.concepts,
        library.book.references,
        library.book.translations,
    )
    alone = Library(Path(tempfile.gettempdir()), library.mine, book, library.store)
    with uncollected():  # as `readerkit site build` does
        made = make_site(alone, inputs, build_cache)
        pages = [
            make() for address, make in made.items() if address.startswith("read/")
        ]
    return sum(map(len, pages))


def pygments(files: dict[str, bytes]) -> int:
    lexer, formatter = PythonLexer(), HtmlFormatter()
    return sum(
        len(pygments_highlight(data.decode("utf-8", "replace"), lexer, formatter))
        for data in files.values()
    )


def pycco(paths: list[Path]) -> int:
    return sum(len(generate_documentation(str(path), "docs")) for path in paths)


def parse_and_capture(files: dict[str, bytes]) -> int:
    captured = 0
    for data in files.values():
        tree = tree_sitter.Parser(PYTHON).parse(data)
        found = tree_sitter.QueryCursor(QUERY).captures(tree.root_node)
        captured += sum(map(len, found.values()))
    return captured


def nothing_changed() -> None:
    """A second build beside the start of Python and the command, by the clock."""
    with tempfile.TemporaryDirectory() as folder:
        build = ["-m", "readerkit", "site", "build", "--output", f"{folder}/site"]
        subprocess.run([sys.executable, *build], check=True, stdout=subprocess.DEVNULL)
        times: dict[str, list[float]] = {"build": [], "start": []}
        for _ in range(15):
            for name, arguments in (
                ("build", build),
                ("start", ["-m", "readerkit", "site", "build", "--help"]),
            ):
                begin = time.perf_counter()
                subprocess.run(
                    [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL
                )
                times[name].append(time.perf_counter() - begin)
    middle, least = (
        {name: best(each) for name, each in times.items()}
        for best in (statistics.median, min)
    )
    print(
        "| second build, nothing changed, over start-up "
        f"({middle['build']:.3f} over {middle['start']:.3f} s) "
        f"| {middle['build'] / middle['start']:.2f}, of minima "
        f"{least['build'] / least['start']:.2f} | at most 2 |"
    )


if __name__ == "__main__":
    main()
