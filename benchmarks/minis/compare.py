"""How long ``readerkit compare`` takes on two ranks, beside an import of torch.

Prints the table that stands in README.md. A comparison and its peer take turns, so that
what the machine does besides falls on both. The peer is a Python that imports torch and
torch.distributed and does nothing: what each tool that starts ranks pays at least once.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
from time import perf_counter

import torch

from mini_impls.compare.comparisons import comparisons

WORLD_SIZE = 2
PEER = [sys.executable, "-c", "import torch, torch.distributed"]
TARGET_S = 4.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mini", nargs="*", help="some minis (default: all)")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print(
        f"{platform.platform()}, Python {platform.python_version()}, "
        f"torch {torch.__version__}, {len(os.sched_getaffinity(0))} cores, "
        f"load {os.getloadavg()[0]:.1f}, {args.rounds} rounds\n"
    )
    print("| mini | upstream | seconds | least | of the import | within 4 s |")
    print("|---|---|---|---|---|---|", flush=True)
    for each in comparisons():
        if args.mini and each.mini not in args.mini:
            continue
        command = [sys.executable, "-m", "readerkit", "compare", each.mini]
        command += ["--upstream", each.upstream, "--world", str(WORLD_SIZE)]
        print(row(each.mini, each.upstream, command, args.rounds), flush=True)


def row(mini: str, upstream: str, command: list[str], rounds: int) -> str:
    """Return a line of the table: medians, the least, and the ratio to the peer."""
    took, peer = [], []
    for _ in range(rounds):
        try:
            took.append(seconds(command))
        except subprocess.CalledProcessError as error:
            return f"| {mini} | {upstream} | ended with {error.returncode} | | | |"
        peer.append(seconds(PEER))
    median = statistics.median(took)
    ratio = median / statistics.median(peer)
    within = "yes" if median < TARGET_S else "no"
    figures = f"{median:.1f} | {min(took):.1f} | {ratio:.1f}"
    return f"| {mini} | {upstream} | {figures} | {within} |"


def seconds(command: list[str]) -> float:
    """Return what a command took that succeeded."""
    start = perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return perf_counter() - start


if __name__ == "__main__":
    main()
