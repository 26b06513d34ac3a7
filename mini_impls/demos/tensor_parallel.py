"""Tensor parallelism beside one process."""

import argparse
from functools import partial

from mini_impls import launch
from mini_impls.demos.formulas import get_tensor_parallel_traffic
from mini_impls.demos.training import Train, train_slices
from mini_impls.launch import Rank
from mini_impls.model import GPT, GPTConfig, build_model
from mini_impls.tensor_parallel import check_sizes, tensor_parallel, train


def demo(rank: Rank, args: argparse.Namespace) -> None:
    """Train on all ranks, say what they hold and send, compare with one process."""
    config = GPTConfig()
    full = sum(param.numel() for param in build_model(config).parameters())

    def cut(gpt: GPT) -> Train:
        tensor_parallel(gpt, rank.group)
        return partial(train, gpt, tp_group=rank.group)

    def show(gpt: GPT) -> None:
        held = sum(param.numel() for param in gpt.parameters())
        layer = dict(gpt.layers[0].named_parameters())
        shapes = [
            f"{name} {tuple(p.shape)}" for name, p in layer.items() if p.dim() > 1
        ]
        rank.say_each(
            f"holds {held:,} of {full:,} parameters: layer 0 {', '.join(shapes)}"
        )

    traffic = get_tensor_parallel_traffic
    train_slices(
        rank,
        config,
        args.steps,
        cut=cut,
        show=show,
        get_traffic=traffic,
        layout={"tp": rank.world_size},
    )


def check(args: argparse.Namespace) -> None:
    """Raise ValueError where the demo's model does not fit the world."""
    check_sizes(GPTConfig(), args.world)


def main(argv: list[str] | None = None) -> int:
    """Run the demo."""
    description = "tensor parallelism beside one process"
    return launch.main(demo, description=description, check=check, argv=argv)
