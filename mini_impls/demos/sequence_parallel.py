"""Sequence parallelism beside one process."""

import argparse

import torch

from mini_impls import launch, model
from mini_impls.demos.formulas import get_sequence_parallel_traffic
from mini_impls.demos.training import Train, train_slices
from mini_impls.launch import Rank
from mini_impls.model import GPT, GPTConfig, TransformerLayer
from mini_impls.sequence_parallel_model import (
    check_sizes,
    model_parallel_manual_seed,
    sequence_parallel,
    train,
)

CONFIG = GPTConfig(num_query_groups=4)


def demo(rank: Rank, args: argparse.Namespace) -> None:
    """Train on all ranks, say what they make and send, compare with one process."""
    generator = torch.default_generator
    if rank.device.type == "cuda":
        generator = torch.cuda.default_generators[rank.device.index]
    tracker = model_parallel_manual_seed(0, rank.rank, generator)

    def cut(gpt: GPT) -> Train:
        partial = sequence_parallel(gpt, rank.group, tracker)
        return lambda optimizer, batches: train(
            gpt, optimizer, batches, partial, rank.group
        )

    def show(gpt: GPT) -> None:
        first, shapes = gpt.layers[0], []
        assert isinstance(first, TransformerLayer)
        hooks = [
            module.register_forward_hook(
                lambda module, args, out: shapes.append(tuple(out.shape))
            )
            for module in (first.input_layernorm, first.mlp.linear_fc1)
        ]
        with torch.no_grad():
            gpt(model.make_batch(CONFIG, step=0, batch_size=8)[0].to(rank.device))
        for hook in hooks:
            hook.remove()
        norm, fc1 = shapes
        rank.say_each(f"layer 0 makes (T, B, channels): norm {norm}, linear_fc1 {fc1}")

    traffic = get_sequence_parallel_traffic
    train_slices(
        rank,
        CONFIG,
        args.steps,
        cut=cut,
        show=show,
        get_traffic=traffic,
        layout={"tp": rank.world_size, "sequence_parallel": True},
    )


def check(args: argparse.Namespace) -> None:
    """Raise ValueError where the demo's model does not fit the world."""
    check_sizes(CONFIG, args.world)


def main(argv: list[str] | None = None) -> int:
    """Run the demo."""
    description = "sequence parallelism beside one process"
    return launch.main(demo, description=description, check=check, argv=argv)
