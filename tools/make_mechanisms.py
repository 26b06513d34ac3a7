"""Runs the minis and writes down each step, for the pages that play them again.

Writes ``annotations/mechanisms.json``: those that are stale or missing, or all.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec
import torch

from mini_impls import launch
from mini_impls.demos import (
    play_attention,
    play_collectives,
    play_layers,
    play_training,
)
from readerkit.evidence.played import FORMAT, Mechanisms, PlayedRun
from readerkit.model import stored
from readerkit.model.freshness import digest

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "annotations" / "mechanisms.json"
WORLD_SIZE = 4
RUNS: dict[str, tuple[Any, Any, str]] = {
    **play_collectives.RUNS,
    **play_training.RUNS,
    **play_layers.RUNS,
    **play_attention.RUNS,
}


def main() -> int:
    """Make what is asked for; return 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="mechanisms; default: the stale ones")
    parser.add_argument("--all", action="store_true", help="all of them")
    args = parser.parse_args()
    known, wanted = read(), []
    for name, (_, _, mini) in RUNS.items():
        old = known.get(name)
        is_stale = old is None or old.made_from != files_of(mini)
        if args.all or name in args.names or (is_stale and not args.names):
            wanted.append(name)
    known |= made(wanted)
    runs = {name: known[name] for name in RUNS if name in known}
    file = Mechanisms(FORMAT, torch.__version__.partition("+")[0], runs)
    FILE.write_text(stored.write(file, width=4), "utf-8")
    return 0


def made(names: list[str]) -> dict[str, PlayedRun]:
    """Return mechanisms, played on real ranks now: one start for each world size."""
    found = {}
    for world_size in sorted({world_size_of(name) for name in names}):
        some = [name for name in names if world_size_of(name) == world_size]
        print(f"{world_size} ranks: {', '.join(some)}", flush=True)
        per_rank = launch.run(play, (some,), world_size=world_size)
        for name in some:
            _, combine, mini = RUNS[name]
            values = combine([each[name] for each in per_rank])
            values |= {"made_from": files_of(mini)}
            found[name] = msgspec.convert(msgspec.to_builtins(values), PlayedRun)
    return found


def play(rank: launch.Rank, names: list[str]) -> dict[str, Any]:
    """Return what a rank wrote down of each mechanism."""
    return {name: RUNS[name][0](rank) for name in names}


def world_size_of(name: str) -> int:
    """Return how many ranks a mechanism is played on."""
    return int(getattr(RUNS[name][0], "world_size", WORLD_SIZE))


def files_of(mini: str) -> dict[str, str]:
    """Return the files that a mechanism is made from, with their digests."""
    paths = [f"mini_impls/{name}.py" for name in mini.split()]
    return {path: digest((ROOT / path).read_bytes()) for path in paths}


def read() -> dict[str, PlayedRun]:
    """Return what the file has; nothing, where it cannot be read."""
    if not FILE.exists():
        return {}
    file = stored.parse(
        FILE.read_text("utf-8"),
        Mechanisms,
        FILE.name,
        what="file of mechanisms",
        expected="python -m tools.make_mechanisms --all",
        version=FORMAT,
    )
    return dict(file.runs)


if __name__ == "__main__":
    sys.exit(main())
