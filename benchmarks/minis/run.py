"""How long a training step of each mini takes, beside its upstream and a naive one.

Prints the table that stands in README.md. The three take their steps in turn, in one
launch, so that what the machine does besides falls on all of them.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import warnings
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

from mini_impls import ddp, launch
from mini_impls.compare import ddp as compare_ddp
from mini_impls.compare import shims, upstream_files
from mini_impls.compare.comparisons import comparisons, find
from mini_impls.compare.sides import Comparison, DataParallelSide, Side, ignore_phase
from mini_impls.launch import Rank
from mini_impls.model import make_batch
from readerkit.app.library import open_library

SIZES = {
    "max_sequence_length": 128,
    "num_layers": 4,
    "hidden_size": 256,
    "num_attention_heads": 4,
    "num_query_groups": 4,
    "ffn_hidden_size": 1024,
}
"""Of every model; what else its configuration says is the comparison's own."""
EXPERT_SIZES = {"moe_ffn_hidden_size": 512}
"""Two experts a token are then as wide as the MLP that they stand for."""
WORLD_SIZE = 2
ROWS_PER_RANK = 8
BUCKET_CAP_MB = 4.0
"""Three buckets and a bit; 25 MiB, the default of torch, would be one bucket."""
NOT_TRAINED = ("inference",)
"""Minis without a step of training, which is what is timed here."""
SIDES = ("mini", "upstream", "naive")

Times = dict[str, list[tuple[float, float]]]
"""Of each side, round by round: seconds on the clock and of the processor."""


class NaiveSide(DataParallelSide):
    """Plain data parallelism: one blocking all-reduce a parameter, after backward."""

    def finish_gradients(self) -> None:
        ddp.all_reduce_gradients(self.module, self.rank.group)


def build_naive(rank: Rank, comparison: Comparison) -> NaiveSide:
    config, parts = comparison.config, comparison.microbatches
    gpt = comparison.alone(config, parts, rank.device).model
    optimizer = torch.optim.AdamW(gpt.parameters(), comparison.learning_rate)
    return NaiveSide(rank, gpt, gpt, optimizer)


def sized(comparison: Comparison) -> Comparison:
    """Return the comparison with this benchmark's model and batch.

    A batch has 16 rows: 8 for each rank, or all of them for ranks that share it.
    """
    rows = ROWS_PER_RANK if comparison.data_parallel else ROWS_PER_RANK * WORLD_SIZE
    resized = comparison.at(WORLD_SIZE)
    sizes = SIZES | (EXPERT_SIZES if comparison.mini == "experts" else {})
    config = replace(resized.config, **sizes)  # type: ignore[arg-type]
    return replace(resized, config=config, rows_per_rank=rows)


def time_steps(
    rank: Rank,
    names: tuple[str, str],
    warm_up: int,
    rounds: int,
    megatron: Path,
    profiled: bool,
) -> Times:
    """Return this rank's seconds a step of each side, round by round."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(megatron))
    warnings.filterwarnings("ignore", module=r"megatron\.")
    warnings.filterwarnings("ignore", r".* is deprecated", FutureWarning)
    comparison = sized(find(*names))
    if comparison.mini == "ddp":
        compare_ddp.BUCKET_CAP_MB = BUCKET_CAP_MB

    def applied(side: str) -> AbstractContextManager[None]:
        needed = comparison.shims if side == "upstream" else ()
        return shims.applied(needed, rank.device)

    with applied("upstream"):
        sides = comparison.build(rank, comparison)
    built: dict[str, Side] = {
        "mini": sides.mini,
        "upstream": sides.upstream,
        "naive": build_naive(rank, comparison),
    }
    times: Times = {side: [] for side in SIDES}
    for number in range(warm_up + rounds):
        batch = make_batch(
            comparison.config, step=number, batch_size=ROWS_PER_RANK * WORLD_SIZE
        )
        turn = number % len(SIDES)
        for side in SIDES[turn:] + SIDES[:turn]:
            dist.barrier(rank.group)
            with applied(side):
                start, worked = perf_counter(), process_time()
                built[side].step(batch, ignore_phase)
                took = perf_counter() - start, process_time() - worked
            if number >= warm_up:
                times[side].append(took)
    for side in ("mini", "upstream") if profiled else ():
        with applied(side), profile(activities=[ProfilerActivity.CPU]) as seen:
            for _ in range(3):
                built[side].step(batch, ignore_phase)
        table = seen.key_averages().table("self_cpu_time_total", row_limit=16)
        rank.say(f"{side}, three steps\n{table}")
    return times


def row(comparison: Comparison, results: list[Times]) -> str:
    """Return a line of the table; a step is over when the slower rank's is."""
    clock, processor = (
        {
            side: [max(t[which] for t in took) for took in zip(*ranks, strict=True)]
            for side in SIDES
            if (ranks := [times[side] for times in results])
        }
        for which in (0, 1)
    )
    median = {side: statistics.median(times) for side, times in clock.items()}
    least = {side: min(times) for side, times in clock.items()}
    worked = {side: statistics.median(times) for side, times in processor.items()}
    cells = [
        comparison.mini,
        comparison.upstream,
        *(f"{1000 * least[side]:.0f}" for side in SIDES),
        *(
            f"{statistic['mini'] / statistic[other]:.2f}"
            for other in ("upstream", "naive")
            for statistic in (median, least, worked)
        ),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mini", nargs="*", help="some minis (default: all)")
    parser.add_argument("--upstream", help="one upstream only")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--warm-up", type=int, default=3, help="rounds before those")
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    args = parser.parse_args()
    chosen = [
        comparison
        for comparison in comparisons()
        if comparison.mini not in NOT_TRAINED
        and (not args.mini or comparison.mini in args.mini)
        and args.upstream in (None, comparison.upstream)
    ]
    library = open_library()
    with tempfile.TemporaryDirectory(prefix="benchmark-megatron-") as name:
        upstream_files.check_torch(library)
        upstream_files.write_megatron(library, Path(name))
        load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
        print(
            f"{platform.platform()}, Python {platform.python_version()}, "
            f"torch {torch.__version__}, {len(os.sched_getaffinity(0))} cores, "
            f"load {load}, {args.rounds} rounds\n"
        )
        print(
            "| mini | upstream | least, ms: mini | upstream | naive "
            "| mini of upstream: medians | minima | processor "
            "| mini of naive: medians | minima | processor |"
        )
        print("|---" * 11 + "|", flush=True)
        for comparison in chosen:
            results = launch.run(
                time_steps,
                (
                    (comparison.mini, comparison.upstream),
                    args.warm_up,
                    args.rounds,
                    Path(name),
                    args.profile,
                ),
                world_size=WORLD_SIZE,
                timeout_s=120.0,
            )
            print(row(comparison, results), flush=True)


if __name__ == "__main__":
    main()
