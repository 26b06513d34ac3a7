"""Measures lab 02's curve: milliseconds a token on 1, 2 and 4 ranks, at four widths.

Prints a table for README.md: run it where nothing else runs.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile

import torch

from mini_impls import launch, model
from mini_impls.demos import lab_generation as lab
from mini_impls.weights import save_weights

WORLDS = (1, 2, 4)


def main() -> None:
    """Measure each width on each number of ranks, and print a row for both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--timeout", type=float, default=60.0)
    args = parser.parse_args()
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(
        f"{platform.platform()}, Python {platform.python_version()}, torch "
        f"{torch.__version__}, {cores} cores, load {load:.1f} before, "
        f"{args.rounds} rounds\n"
    )
    print("| width | ranks | ms a token | of it all-reduces | speed-up | prefill, ms |")
    print("|---" * 6 + "|")
    with tempfile.TemporaryDirectory(prefix="benchmark-generation-") as folder:
        digests = {}
        for width in lab.HIDDEN_SIZES:
            gpt = model.build_model(lab.get_config(width))
            digests[width] = save_weights(gpt, lab._path(folder, width))
        of_world = {}
        for world in WORLDS:
            of_world[world] = launch.run(
                lab.on_rank,
                (folder, digests, args.rounds),
                world_size=world,
                backend="gloo",
                timeout_s=args.timeout,
            )[0]
    texts = {
        tuple(map(tuple, (r["tokens"] for r in rows))) for rows in of_world.values()
    }
    for i, width in enumerate(lab.HIDDEN_SIZES):
        alone = of_world[1][i]["token_s"]
        for world in WORLDS:
            row = of_world[world][i]
            print(
                f"| {width} | {world} | {1e3 * row['token_s']:.2f} "
                f"| {1e3 * row['all_reduces_s']:.2f} "
                f"| {alone / row['token_s']:.2f} | {1e3 * row['prefill_s']:.2f} |"
            )
    print(f"\nThe tokens are the same on 1, 2 and 4 ranks: {len(texts) == 1}")


if __name__ == "__main__":
    main()
