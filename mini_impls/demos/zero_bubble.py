"""A zero-bubble pipeline: what it computes, and how long its ranks idle."""

import argparse
import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls import launch, model
from mini_impls.demos.formulas import get_pipeline_traffic, get_v_pipeline_traffic
from mini_impls.demos.training import counted, say_beside_one_process
from mini_impls.launch import Rank
from mini_impls.model import GPT, Batch, GPTConfig, make_batch
from mini_impls.pipeline_stages import PipelineStage, check_sizes
from mini_impls.schedules import Step
from mini_impls.timeline import Timeline, get_bubble
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

EVEN = {"F": 1, "B": 1, "W": 1}


class PacedExecutor(ZeroBubbleExecutor):
    """Lets each step take at least so long, as if all were of one cost.

    What ranks wait for is then the schedule's doing, and not the machine's.
    """

    step_s = 0.0

    def run_step(
        self, step: Step, block: Block, batches: Sequence[Batch], losses: list[Tensor]
    ) -> None:
        """Run a step, and sleep for the rest of its time."""
        start = self.now()
        super().run_step(step, block, batches, losses)
        time.sleep(max(0.0, start + self.step_s - self.now()))


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


def measured_bubble(rank: Rank, executor: ZeroBubbleExecutor) -> tuple[float, float]:
    """Return how much of its busy time a rank idled, and how long it was busy.

    Clocks of one machine are one; idle is all time from the first step to the last.
    """
    everyone: list[Any] = [None] * rank.world_size
    dist.all_gather_object(everyone, executor.ran, group=rank.group)
    spans = [span for ran in everyone for span in ran.values()]
    total = max(end for _, end in spans) - min(start for start, _ in spans)
    busy = sum(end - start for start, end in executor.ran.values())
    return (total - busy) / busy, busy


def demo(rank: Rank, args: argparse.Namespace) -> None:
    """Train by one schedule, time its steps, compare with one process."""
    p, m, schedule = rank.world_size, args.microbatches, args.schedule
    config = GPTConfig(num_layers=args.layers)
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
    losses += train(executor, plan, optimizer, counted(rank, batches[1:]), m)
    idle, busy = measured_bubble(rank, executor)
    on_paper, _ = get_bubble(timeline, p)
    closed, formula = get_split_bubble(schedule, p, m)
    rank.say(
        f"bubble of ideal time, every step of one cost: {float(on_paper):.2%}, "
        f"{formula} = {float(closed):.2%}"
    )
    rank.say_each(f"measured: busy for {busy:.3f} s, idle for {idle:.2%} of that")

    say_beside_one_process(rank, config, stages, batches, m, losses)


def draw_by_rank(timeline: Timeline, orders: Sequence[Sequence[Step]]) -> list[str]:
    """Return one line a rank, one column a unit of time: `F3b` is of its chunk b."""
    end = max(span[1] for span in timeline.values())
    rows = []
    for rank, order in enumerate(orders):
        stages = sorted({step.stage for step in order})
        cells = ["."] * end
        for step in order:
            letter = "ab"[stages.index(step.stage)] if len(stages) > 1 else ""
            cells[timeline[step][0]] = f"{step.kind}{step.microbatch_id}{letter}"
        rows.append((rank, cells))
    width = max(len(cell) for _, cells in rows for cell in cells)
    return [
        f"rank {rank} | {' '.join(cell.ljust(width) for cell in cells)}".rstrip()
        for rank, cells in rows
    ]


def check(args: argparse.Namespace) -> None:
    """Raise ValueError where schedule, layers and ranks do not fit."""
    get_blocks(args.schedule, args.world, args.microbatches)
    check_sizes(
        GPTConfig(num_layers=args.layers), get_num_stages(args.schedule, args.world)
    )


def main(argv: list[str] | None = None) -> int:
    """Run the demo."""
    options = {
        "schedule": ("zb-v", f"{', '.join(SCHEDULES)} (default zb-v)"),
        "microbatches": (8, "microbatches a step (default 8)"),
        "layers": (4, "layers of the model (default 4)"),
        "step-ms": (20.0, "least milliseconds of each F, B and W (default 20)"),
    }
    return launch.main(
        demo,
        description="a pipeline that splits the backward, beside one process",
        check=check,
        options=options,
        argv=argv,
    )
