"""A pipeline and its schedule, beside one process."""

import argparse
import sys

import torch
from torch import nn

from mini_impls import launch, model
from mini_impls.demos.expected import staged
from mini_impls.demos.formulas import get_pipeline_traffic
from mini_impls.demos.training import (
    counted,
    next_multiple,
    say_beside_one_process,
)
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig
from mini_impls.pipeline import PipelineExecutor, train
from mini_impls.pipeline_stages import check_sizes, split_model
from mini_impls.schedules import get_orders
from mini_impls.timeline import add_send_recv, draw, get_peak_in_flight, get_timeline
from mini_impls.traffic import CollectiveCounter
from readerkit.wording.grid_blocks import fitting_grid


def config_of(args: argparse.Namespace) -> GPTConfig:
    """Return the model: as many layers as asked for, or some for each stage."""
    stages = max(1, args.world * args.chunks)
    least = GPTConfig().num_layers
    return GPTConfig(num_layers=args.layers or next_multiple(stages, least))


def demo(rank: Rank, args: argparse.Namespace) -> None:
    """Train on all ranks, say what they hold and send, compare with one process."""
    config = config_of(args)
    orders = get_orders(args.schedule, rank.world_size, args.microbatches, args.chunks)
    plan = add_send_recv(orders)[rank.rank]
    batches = []
    for step in range(args.steps):
        tokens, labels = model.make_batch(
            config, step=step, batch_size=2 * args.microbatches
        )
        batches.append((tokens.to(rank.device), labels.to(rank.device)))
    gpt = model.build_model(config).to(rank.device)
    stages = split_model(gpt, rank.rank, rank.world_size, args.chunks)
    tensor_shape = (2, config.max_sequence_length, config.hidden_size)
    # 1F1B takes each message the moment it is there: nothing could be overlapped.
    overlap = args.schedule == "interleaved"
    executor = PipelineExecutor(stages, tensor_shape, rank.group, overlap=overlap)

    rank.recorder.expect(
        staged(
            config,
            rank,
            schedule=args.schedule,
            microbatches=args.microbatches,
            chunks=args.chunks,
        )
    )
    grid = draw(get_timeline(orders), rank.world_size)
    rank.say(fitting_grid(grid, sys.stdout))
    names = [f"{stage}: {len(s.layers)} layers" for stage, s in stages.items()]
    params = nn.ModuleList(stages.values())
    held = sum(param.numel() for param in params.parameters())
    rank.say_each(f"holds stage {', '.join(names)}; {held:,} parameters")

    optimizer = torch.optim.AdamW(params.parameters(), lr=1e-3)
    with CollectiveCounter() as sent:
        losses = train(executor, plan, optimizer, batches[:1], args.microbatches)
    formula = get_pipeline_traffic(tensor_shape, args.microbatches, rank, args.chunks)
    counts, payload = sent.counts(), sent.payload_bytes()
    traffic = [
        f"{counts[op]} {op}, {payload[op]:,} bytes (formula {formula.get(op, 0):,})"
        for op in sorted(counts)
    ]
    rank.say_each(
        f"one step: {'; '.join(traffic)}; at most {executor.peak_in_flight} "
        f"activations held (schedule: {get_peak_in_flight(orders[rank.rank])})"
    )
    told = counted(rank, batches[1:])
    losses += train(executor, plan, optimizer, told, args.microbatches)

    say_beside_one_process(rank, config, stages, batches, args.microbatches, losses)


def check(args: argparse.Namespace) -> None:
    """Raise ValueError where schedule, layers and ranks do not fit."""
    orders = get_orders(args.schedule, args.world, args.microbatches, args.chunks)
    if any(step.kind == "W" for order in orders for step in order):
        raise ValueError(f"{args.schedule} splits the backward: `zero_bubble` runs it")
    try:
        check_sizes(config_of(args), args.world * args.chunks)
    except ValueError as error:
        fit = next_multiple(args.world * args.chunks, max(args.layers, 1))
        raise ValueError(f"--layers: {error}, {fit} can") from error


def main(argv: list[str] | None = None) -> int:
    """Run the demo."""
    options = {
        "schedule": ("1f1b", "gpipe, 1f1b (default) or interleaved"),
        "microbatches": (4, "microbatches a step (default 4)"),
        "chunks": (1, "model chunks a rank, for interleaved (default 1)"),
        "layers": (0, "layers of the model (default: 4 or more, for even stages)"),
    }
    return launch.main(
        demo,
        description="pipeline parallelism beside one process",
        check=check,
        options=options,
        argv=argv,
    )
