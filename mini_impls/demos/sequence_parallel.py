"""Sequence parallelism beside one process."""

import argparse

import torch

from mini_impls import launch, model
from mini_impls.demos.formulas import get_sequence_parallel_traffic
from mini_impls.demos.training import ALONE, counted
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig, TransformerLayer
from mini_impls.sequence_parallel_model import (
    check_sizes,
    model_parallel_manual_seed,
    sequence_parallel,
    train,
)
from mini_impls.traffic import CollectiveCounter


def demo(rank: Rank, args: argparse.Namespace) -> None:
    """Train on all ranks, say what they hold and send, compare with one process."""
    config = GPTConfig(num_query_groups=4)
    batches = []
    for step in range(args.steps):
        tokens, labels = model.make_batch(config, step=step, batch_size=8)
        batches.append((tokens.to(rank.device), labels.to(rank.device)))
    reference = model.build_model(config).to(rank.device)
    gpt = model.build_model(config).to(rank.device)
    generator = torch.default_generator
    if rank.device.type == "cuda":
        generator = torch.cuda.default_generators[rank.device.index]
    tracker = model_parallel_manual_seed(0, rank.rank, generator)
    partial = sequence_parallel(gpt, rank.group, tracker)

    first, shapes = gpt.layers[0], []
    assert isinstance(first, TransformerLayer)
    for module in (first.input_layernorm, first.mlp.linear_fc1):
        module.register_forward_hook(
            lambda m, args, out: shapes.append(tuple(out.shape))
        )
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-3)
    with CollectiveCounter() as sent:
        losses = train(gpt, optimizer, batches[:1], partial, rank.group)
    norm, fc1 = shapes
    rank.say_each(f"layer 0 makes (T, B, channels): norm {norm}, linear_fc1 {fc1}")
    formula = get_sequence_parallel_traffic(
        config, batches[0][0].numel(), rank.world_size
    )
    for op, payload_bytes in sent.payload_bytes().items():
        rank.say(
            f"one step: {sent.counts()[op]} {op}, {payload_bytes:,} bytes "
            f"(formula {formula.get(op, 0):,})"
        )
    told = counted(rank, batches[1:])
    losses += train(gpt, optimizer, told, partial, rank.group)
    rank.say("loss: " + " ".join(f"{loss:.4f}" for loss in losses))

    optimizer = torch.optim.AdamW(reference.parameters(), lr=1e-3)
    told = counted(rank, batches, ALONE)
    expected = model.train_one_process(reference, optimizer, told)
    sequence_parallel(reference, rank.group, tracker)  # cut in the same way
    pairs = zip(gpt.parameters(), reference.parameters(), strict=True)
    parameter = max((a - b).abs().max().item() for a, b in pairs)
    loss = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
    rank.say_each(
        f"largest difference from one process: loss {loss:.1e}, "
        f"parameter {parameter:.1e}"
    )


def check(args: argparse.Namespace) -> None:
    """Raise ValueError where the demo's model does not fit the world."""
    check_sizes(GPTConfig(num_query_groups=4), args.world)


def main(argv: list[str] | None = None) -> int:
    """Run the demo."""
    description = "sequence parallelism beside one process"
    return launch.main(demo, description=description, check=check, argv=argv)
