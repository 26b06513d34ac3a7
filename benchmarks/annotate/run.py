"""How fast anchors resolve, as ratios against a peer measured in the same run.

Prints the table that stands in README.md. Runs are interleaved, so that a busy moment
of the machine falls on both sides. Commands are measured by the clock on the wall, what
runs in this process by its own processor time.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import tree_sitter

from readerkit.anchors import Anchor, SourceFile, resolve
from readerkit.anchors.grammars import python_grammar
from readerkit.anchors.pattern import compile_pattern
from readerkit.app.check_claims import claims_of, open_ground
from readerkit.app.library import Library, open_library
from readerkit.claims.check_dispatch import hold
from readerkit.content.claims import Claim
from readerkit.errors import AnchorError
from readerkit.model.git_names import TreePath

ROUNDS = 15
ANCHORS = 10_000

PEER = """
import sys, yaml, tree_sitter, tree_sitter_python
parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(".yaml"):
        yaml.load(data, yaml.CSafeLoader)
    else:
        parser.parse(data)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast anchors resolve.")
    parser.add_argument("--rows", default="", help="only rows that say this")
    wanted = parser.parse_args().rows
    print(f"{platform.platform()}, Python {platform.python_version()}, ", end="")
    print(f"tree-sitter {tree_sitter.LANGUAGE_VERSION}, {ROUNDS} rounds, ", end="")
    print(f"load {os.getloadavg()[0]:.1f}\n")
    print(
        "| what | peer | median, ms | peer median, ms | ratio of medians | of minima |"
    )
    print("|---|---|---|---|---|---|")
    library = open_library()
    lock = library.lock(library.upstream("megatron"))
    blobs = {path: library.store.path(blob) for path, blob in lock.files.items()}
    files = {path: file.read_bytes() for path, file in blobs.items()}
    anchors = generate(files, ANCHORS)
    with tempfile.TemporaryDirectory() as folder:
        for row in commands(library, blobs, Path(folder)):
            if wanted in row[0]:
                compare(*row)
    for row in in_this_process(library, files, anchors):
        if wanted in row[0]:
            # Other work on the machine need not count.
            compare(*row, time.process_time)
    if not wanted:
        growth(files, anchors)


Action = Callable[[], object]


def commands(
    library: Library, blobs: Mapping[TreePath, Path], folder: Path
) -> Iterator[tuple[str, str, Action, Action]]:
    """Yield each row about a whole command: what, its peer, and a run of both.

    The cache in the folder has the upstreams, and nothing that was remembered of them.
    """
    annotated = sorted({a.anchor.file for a in library.book.notes_on("megatron")})
    yaml_files = sorted(map(str, (library.root / "annotations").rglob("*.yaml")))
    peer = "python start, YAML load, parse of the annotated files"
    load = process("-c", PEER, *yaml_files, *(str(blobs[path]) for path in annotated))
    for kept in ("blobs", "served"):
        (folder / kept).symlink_to(library.store.root / kept)
    note = ("annotate", "megatron")
    yield "warm `readerkit annotate megatron`", peer, script(*note), load
    places = after(folder, "*.places", *note)
    yield "the same, the notes' places not known yet", peer, places, load
    yield "the same, nothing remembered", peer, after(folder, "*", *note), load
    for option in ("--help", "--version"):
        start = process("-c", "import click")
        peer = '`python -c "import click"`'
        yield f"`readerkit {option}`", peer, script(option), start


def in_this_process(
    library: Library, files: dict[TreePath, bytes], anchors: list[Anchor]
) -> Iterator[tuple[str, str, Action, Action]]:
    """Yield each row about a part of the work: what, its peer, and a run of both."""
    yield (
        f"resolve {len(anchors):,} anchors over {len(files)} files",
        "parse of the same bytes",
        lambda: resolve_all(files, anchors),
        lambda: parse_all(files),
    )
    claims, touched = claims_and_files(library)
    yield (
        f"hold {len(claims):,} claims of the book over {len(touched)} files",
        "parse of the files that they touch",
        lambda: hold_all(library, claims),
        lambda: parse_all(touched),
    )


def growth(files: dict[TreePath, bytes], anchors: list[Anchor]) -> None:
    """Print what resolving takes with fewer anchors, and with fewer files."""
    print(
        "\n| anchors | files | resolve, ms | parse, ms | per anchor beyond parse, µs |"
    )
    print("|---|---|---|---|---|")
    for share in (4, 2, 1):
        scale(files, anchors[: len(anchors) // share])
    for share in (4, 2):
        some = {path: files[path] for path in [*files][::share]}
        scale(some, [anchor for anchor in anchors if anchor.file in some])


def claims_and_files(library: Library) -> tuple[list[Claim], dict[TreePath, bytes]]:
    """Return the claims of a book, and every file that one of them looks at."""
    ground = open_ground(library)
    claims = [each.claim for each in claims_of(library, None, ground)]
    files: dict[TreePath, bytes] = {}
    read = ground.read

    def noted(path: TreePath) -> bytes:
        files[path] = read(path)
        return files[path]

    ground.read = noted  # type: ignore[method-assign]
    for claim in claims:
        hold(claim, ground)
    return claims, files


def hold_all(library: Library, claims: list[Claim]) -> None:
    ground = open_ground(library)
    for claim in claims:
        hold(claim, ground)


def process(*arguments: str, cache: Path | None = None) -> Callable[[], object]:
    # Compiled modules are kept, as they are for a user, whatever is set here.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    if cache:
        env["READERKIT_CACHE"] = str(cache)
    command = [sys.executable, *arguments]
    return lambda: subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, env=env
    )


def script(*arguments: str, cache: Path | None = None) -> Callable[[], object]:
    own = str(Path(sys.executable).with_name("readerkit"))
    return process(own, *arguments, cache=cache)


def after(cache: Path, forgotten: str, *arguments: str) -> Callable[[], object]:
    """Return a run of the command that finds a part of its memory gone."""
    run = script(*arguments, cache=cache)

    def forget_and_run() -> None:
        for path in (cache / "parsed").glob(forgotten):
            path.unlink()
        run()

    return forget_and_run


Clock = Callable[[], float]


def timed(action: Callable[[], object], clock: Clock) -> float:
    start = clock()
    action()
    return (clock() - start) * 1000


def measure(
    *actions: Callable[[], object], clock: Clock = time.perf_counter
) -> list[list[float]]:
    times: list[list[float]] = [[] for _ in actions]
    for action in actions:
        action()
    for _ in range(ROUNDS):
        for index, action in enumerate(actions):
            times[index].append(timed(action, clock))
    return times


def compare(
    what: str,
    peer: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    clock: Clock = time.perf_counter,
) -> None:
    mine, other = measure(ours, theirs, clock=clock)
    middle, peer_middle = statistics.median(mine), statistics.median(other)
    print(
        f"| {what} | {peer} | {middle:.1f} | {peer_middle:.1f} "
        f"| {middle / peer_middle:.2f} | {min(mine) / min(other):.2f} |",
        flush=True,
    )


def scale(files: dict[str, bytes], anchors: list[Anchor]) -> None:
    mine, other = measure(
        lambda: resolve_all(files, anchors),
        lambda: parse_all(files),
        clock=time.process_time,
    )
    took, parse = min(mine), min(other)
    print(
        f"| {len(anchors):,} | {len(files)} | {took:.0f} | {parse:.0f} "
        f"| {(took - parse) * 1000 / len(anchors):.1f} |",
        flush=True,
    )


def parse_all(files: dict[str, bytes]) -> None:
    parser = tree_sitter.Parser(python_grammar())
    for data in files.values():
        parser.parse(data)


def resolve_all(files: dict[str, bytes], anchors: list[Anchor]) -> None:
    compile_pattern.cache_clear()  # a first run knows no pattern yet
    by_file: dict[str, list[Anchor]] = {}
    for anchor in anchors:
        by_file.setdefault(anchor.file, []).append(anchor)
    for path, data in files.items():
        source = SourceFile(path, data)
        assert source.root
        for anchor in by_file.get(path, ()):
            resolve(anchor, source)


def generate(files: dict[str, bytes], count: int) -> list[Anchor]:
    """Make anchors of the kinds that people write: half symbols, half inside one.

    Of the second half most are calls, a fifth are ranges between two calls, and one in
    ten picks among equals with ``nth``.
    """
    choose = random.Random(20)
    symbols: list[Anchor] = []
    inside: list[Anchor] = []
    for path, data in files.items():
        source = SourceFile(path, data)
        for name, (symbol, *others) in source.symbols.items():
            if others:
                continue
            symbols.append(Anchor(path, symbol=name))
            text = data[symbol.scope.start_byte : symbol.scope.end_byte].decode()
            calls = re.findall(r"(?<![\w.\])])((?:[a-z_]\w*\.)*[a-z_]\w{3,})\(", text)
            once = [f"{call}(...)" for call in calls if calls.count(call) == 1]
            inside += [Anchor(path, symbol=name, code=call) for call in once]
            if len(once) >= 2:
                start, stop = once[0], once[-1]
                inside += [Anchor(path, symbol=name, start=start, stop=stop)] * 4
            twice = [call for call in dict.fromkeys(calls) if calls.count(call) == 2]
            inside += [
                Anchor(path, symbol=name, code=f"{call}(...)", nth=2)
                for call in twice[:1]
            ] * 2
    choose.shuffle(inside)
    parsed = {path: SourceFile(path, data) for path, data in files.items()}
    chosen = choose.choices(symbols, k=count // 2)
    for anchor in inside:
        if len(chosen) == count:
            break
        try:
            resolve(anchor, parsed[anchor.file])
        except AnchorError:
            continue  # the regular expression saw a call in a string or a definition
        chosen.append(anchor)
    while len(chosen) < count:
        chosen.append(choose.choice(chosen[count // 2 :]))
    choose.shuffle(chosen)
    return chosen


if __name__ == "__main__":
    main()
