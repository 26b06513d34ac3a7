"""A zero-bubble pipeline: what it computes, and how long its ranks idle."""

import argparse
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.profiler import record_function

from mini_impls import launch, model
from mini_impls.demos.expected import Estimated, peak_bytes, ring_bytes
from mini_impls.demos.formulas import get_pipeline_traffic, get_v_pipeline_traffic
from mini_impls.demos.training import (
    counted,
    next_multiple,
    say_beside_one_process,
)
from mini_impls.launch import Rank
from mini_impls.model import GPT, Batch, GPTConfig, make_batch
from mini_impls.pipeline_stages import PipelineStage, check_sizes
from mini_impls.schedules import Step
from mini_impls.timeline import Timeline, Transfer, get_bubble, get_inputs
from mini_impls.traffic import CollectiveCounter
from mini_impls.zero_bubble import ZeroBubbleExecutor, train
from mini_impls.zero_bubble_plan import (
    SCHEDULES,
    V_SHAPED,
    Block,
    add_send_recv,
    get_block_timeline,
    get_blocks,
    get_orders,
    get_split_bubble,
)
from readerkit.estimate.schedules import SOURCES
from readerkit.wording.numbers import format_seconds

EVEN = {"F": 1, "B": 1, "W": 1}


AS_IF_COMPUTING = "aten::"
"""How the names of operations begin. In a trace a step is one of them, sleep and all:
it stands for a longer one that would compute."""


class PacedExecutor(ZeroBubbleExecutor):
    """Lets each step take at least so long, as if all were of one cost.

    What ranks wait for is then the schedule's doing, and not the machine's.
    """

    step_s = 0.0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.runs: list[dict[Step, tuple[float, float]]] = []
        """When each step ran, of one run after another."""

    def run(
        self, plan: Sequence[Block | Transfer], batches: Sequence[Batch]
    ) -> list[float]:
        """Run all microbatches, and keep when."""
        losses = super().run(plan, batches)
        self.runs.append(dict(self.ran))
        return losses

    def run_step(
        self, step: Step, block: Block, batches: Sequence[Batch], losses: list[Tensor]
    ) -> None:
        """Run a step, and sleep for the rest of its time."""
        start = self.now()
        with record_function(AS_IF_COMPUTING + name_of(step, sorted(self.stages))):
            super().run_step(step, block, batches, losses)
            time.sleep(max(0.0, start + self.step_s - self.now()))


def name_of(step: Step, stages: Sequence[int]) -> str:
    """Return kind, microbatch, and of a rank with two stages which: `F3b`."""
    letter = "ab"[stages.index(step.stage)] if len(stages) > 1 else ""
    return f"{step.kind}{step.microbatch_id}{letter}"


def get_num_stages(schedule: str, world_size: int) -> int:
    """Return into how many stages the schedule cuts a model."""
    return world_size * (2 if schedule in V_SHAPED else 1)


def get_stages(gpt: GPT, schedule: str, rank: Rank) -> dict[int, PipelineStage]:
    """Return the stages of one rank: its own and, in a V, that on the way back."""
    num_stages = get_num_stages(schedule, rank.world_size)
    check_sizes(gpt.config, num_stages)
    ids = sorted({rank.rank, num_stages - 1 - rank.rank})
    if schedule not in V_SHAPED:
        ids = [rank.rank]
    return {stage: PipelineStage(gpt, stage, num_stages) for stage in ids}


Spans = dict[Step, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class IdleTime:
    """What one rank did in a run, in seconds."""

    busy: float
    idle: float
    """Until the last of all ranks has ended, from when the first began."""
    ordered: float
    """What of it the order alone costs, if each step takes the time that it took."""


def measure(rank: Rank, blocks: Sequence[Sequence[Block]], ran: Spans) -> IdleTime:
    """Return what a rank did in a run. Clocks of one machine are one."""
    everyone: list[Any] = [None] * rank.world_size
    dist.all_gather_object(everyone, ran, group=rank.group)
    spans = {step: span for each in everyone for step, span in each.items()}
    total = max(e for _, e in spans.values()) - min(s for s, _ in spans.values())
    seconds = {step: end - start for step, (start, end) in spans.items()}
    busy = sum(seconds[step] for step in ran)
    return IdleTime(busy, total - busy, get_seconds(blocks, seconds) - busy)


def get_seconds(
    blocks: Sequence[Sequence[Block]], seconds: Mapping[Step, float]
) -> float:
    """Return how long a run takes whose messages and gaps between steps take nothing.

    As `get_block_timeline`, whose steps of a kind are all as long.
    """
    todo, free = [deque(rank) for rank in blocks], [0.0] * len(blocks)
    num_stages = 1 + max(step.stage for step in seconds)
    over: dict[Step, float] = {}
    while any(todo):
        for rank, coming in enumerate(todo):
            while coming:
                block = coming[0]
                needed = {i for step in block for i in get_inputs(step, num_stages)}
                needed -= {*block}
                if not needed <= over.keys():
                    break
                coming.popleft()
                start = max([free[rank], *(over[step] for step in needed)])
                free[rank] = start + sum(seconds[step] for step in block)
                over |= dict.fromkeys(block, free[rank])
    return max(free)


def demo(rank: Rank, args: argparse.Namespace) -> None:
    """Train by one schedule, time its steps, compare with one process."""
    p, schedule = rank.world_size, args.schedule
    config, m = sizes_of(args, p)
    blocks = get_blocks(schedule, p, m)
    plan = add_send_recv(blocks)[rank.rank]
    gpt = model.build_model(config).to(rank.device)
    stages = get_stages(gpt, schedule, rank)
    shape = (2, config.max_sequence_length, config.hidden_size)
    num_stages = get_num_stages(schedule, p)
    executor = PacedExecutor(stages, num_stages, shape, rank.group)
    batches = []
    for step in range(args.steps):
        tokens, labels = make_batch(config, step=step, batch_size=2 * m)
        batches.append((tokens.to(rank.device), labels.to(rank.device)))
    timeline = get_block_timeline(blocks, EVEN)
    rank.say("\n".join(draw_by_rank(timeline, get_orders(blocks))))
    params = nn.ModuleList(stages.values())
    optimizer = torch.optim.AdamW(params.parameters(), lr=1e-3)
    with CollectiveCounter() as sent:
        losses = train(executor, plan, optimizer, batches[:1], m)
    traffic = (
        get_v_pipeline_traffic(shape, m, rank)
        if schedule in V_SHAPED
        else get_pipeline_traffic(shape, m, rank, 1)
    )
    payload = sent.payload_bytes()
    rank.say_each(
        "one step: "
        + "; ".join(
            f"{n} {op}, {payload[op]:,} bytes (formula {traffic.get(op, 0):,})"
            for op, n in sorted(sent.counts().items())
        )
    )
    executor.step_s = args.step_ms / 1000
    on_paper, _ = get_bubble(timeline, p)
    closed, formula = get_split_bubble(schedule, p, m)
    sent_bytes = ring_bytes(traffic, p)
    slept_s = executor.step_s * len(get_orders(blocks)[rank.rank])
    idle = float(closed / (1 + closed))
    peak = None
    if schedule in SOURCES:
        peak = peak_bytes(
            config, rows=2, rank=rank.rank, pp=p, microbatches=m, schedule=schedule
        )
    rank.recorder.expect(
        Estimated(
            sent_bytes,
            idle=idle,
            peak_bytes=peak,
            compute_s=slept_s or None,
            axis="pp",
        )
    )
    losses += train(executor, plan, optimizer, counted(rank, batches[1:]), m)
    rank.say(
        f"bubble of ideal time, every step of one cost: {float(on_paper):.2%}, "
        f"{formula} = {float(closed):.2%}"
    )
    say_measured(rank, blocks, executor, float(closed))

    say_beside_one_process(rank, config, stages, batches, m, losses)


def say_measured(
    rank: Rank,
    blocks: Sequence[Sequence[Block]],
    executor: PacedExecutor,
    formula: float,
) -> None:
    """Say how long a rank idled, beside the formula, and what of it came from where."""
    runs = executor.runs[1:] or executor.runs  # the first is not paced
    found = [measure(rank, blocks, ran) for ran in runs]
    busy, idle, ordered = (
        fmean(getattr(each, name) for each in found)
        for name in ("busy", "idle", "ordered")
    )
    times = f" ({idle / busy / formula:.2f} times the formula)" if formula else ""
    rank.say_each(
        f"measured: busy for {busy:.3f} s, idle for {idle / busy:.2%} of that{times}"
    )
    took = [end - start for ran in runs for start, end in ran.values()]
    rank.say_each(
        f"of it {ordered / busy:.2%} by the order, with steps as long as they were, "
        f"{format_seconds(min(took))} to {format_seconds(max(took))}; "
        f"{(idle - ordered) / busy:.2%} by ranks that begin late, messages, and what "
        f"is done between steps"
    )


def draw_by_rank(timeline: Timeline, orders: Sequence[Sequence[Step]]) -> list[str]:
    """Return one line a rank, one column a unit of time: `F3b` is of its chunk b."""
    end = max(span[1] for span in timeline.values())
    rows = []
    for rank, order in enumerate(orders):
        stages = sorted({step.stage for step in order})
        cells = ["."] * end
        for step in order:
            cells[timeline[step][0]] = name_of(step, stages)
        rows.append((rank, cells))
    width = max(len(cell) for _, cells in rows for cell in cells)
    return [
        f"rank {rank} | {' '.join(cell.ljust(width) for cell in cells)}".rstrip()
        for rank, cells in rows
    ]


def sizes_of(args: argparse.Namespace, world_size: int) -> tuple[GPTConfig, int]:
    """Return the model and the microbatches: as asked for, or what the ranks take."""
    stages = get_num_stages(args.schedule, world_size)
    layers = args.layers or next_multiple(stages, GPTConfig().num_layers)
    return GPTConfig(num_layers=layers), args.microbatches or max(8, 2 * world_size)


def check(args: argparse.Namespace) -> None:
    """Raise ValueError where schedule, layers and ranks do not fit."""
    if not 0 <= args.step_ms < float("inf"):
        raise ValueError(f"--step-ms {args.step_ms:g} is no time")
    config, microbatches = sizes_of(args, args.world)
    try:
        get_blocks(args.schedule, args.world, microbatches)
    except ValueError as error:
        named = "microbatches" if args.schedule in SCHEDULES else "schedule"
        raise ValueError(f"--{named}: {error}") from error
    stages = get_num_stages(args.schedule, args.world)
    try:
        check_sizes(config, stages)
    except ValueError as error:
        fit = next_multiple(stages, max(config.num_layers, 1))
        raise ValueError(f"--layers: {error}, {fit} can") from error


def main(argv: list[str] | None = None) -> int:
    """Run the demo."""
    options = {
        "schedule": ("zb-v", f"{', '.join(SCHEDULES)} (default zb-v)"),
        "microbatches": (0, "microbatches a step (default: 8, or two a rank)"),
        "layers": (0, "layers of the model (default: 4 or more, for even stages)"),
        "step-ms": (20.0, "least milliseconds of each F, B and W (default 20)"),
    }
    return launch.main(
        demo,
        description="a pipeline that splits the backward, beside one process",
        check=check,
        options=options,
        argv=argv,
    )
