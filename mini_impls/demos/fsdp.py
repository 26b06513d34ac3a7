"""Fully sharded data parallelism, beside one process."""

import argparse

import torch

from mini_impls import launch
from mini_impls.demos.expected import data_parallel
from mini_impls.demos.training import train_alone, train_beside
from mini_impls.fsdp_options import fully_shard
from mini_impls.model import build_model


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Train beside the one-process run; show the shards and what was sent."""
    reference = train_alone(rank, args.steps)
    config = reference.model.config
    rank.recorder.expect(data_parallel(config, rank, stage=3))
    model = build_model(config).to(rank.device)
    names = ["", *(f"layers.{i}" for i in range(config.num_layers))]
    state = fully_shard(model, rank.group, modules=names)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    sent = train_beside(reference, rank, model, optimizer)
    for name, param_group in state.param_groups.items():
        shards = [fsdp_param.sharded_param for fsdp_param in param_group.fsdp_params]
        rank.say(
            f"group {name or 'root'}: {len(shards)} parameters, shards of "
            f"{sum(shard.nbytes for shard in shards):,} bytes on rank 0"
        )
    rank.say_each(
        f"holds {sum(p.nbytes for p in model.parameters()):,} bytes of parameters; "
        f"one step sent {sent.told()}"
    )
    apart = reference.difference(state.full_parameters(model).items())
    rank.say(f"largest difference of a parameter from the one process: {apart:.1e}")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    says = "FSDP2 (fully_shard): fully sharded data parallelism."
    return launch.main(demo, description=says, argv=argv)
