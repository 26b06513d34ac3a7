"""Flat parameters: where the cuts fall, beside one process."""

import argparse

import torch

from mini_impls import launch
from mini_impls.demos.expected import data_parallel
from mini_impls.demos.training import train_alone, train_beside
from mini_impls.fsdp_flat import fully_shard_flat
from mini_impls.model import build_model


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Train beside the one-process run; show where the cuts fall and what was sent."""
    reference = train_alone(rank, args.steps)
    config = reference.model.config
    rank.recorder.expect(data_parallel(config, rank, stage=3))
    model = build_model(config).to(rank.device)
    layers = [f"layers.{i}" for i in range(config.num_layers)]
    state = fully_shard_flat(model, rank.group, modules=layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    sent = train_beside(reference, rank, model, optimizer)
    for handle in state.handles.values():
        start, first = rank.rank * handle.sharded_size, 0
        while start >= handle.numels[first]:
            start -= handle.numels[first]
            first += 1
        name = next(i.fqn for i in handle.param_infos if i.place == first)
        rank.say_each(
            f"holds {handle.sharded_size} of {handle.unpadded_size} elements, from "
            f"element {start} of {name}"
        )
    rank.say_each(f"one step sent {sent.told()}")
    apart = reference.difference(state.full_parameters().items())
    rank.say(f"largest difference of a parameter from the one process: {apart:.1e}")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    says = "FSDP1: flat parameters, fully sharded."
    return launch.main(demo, description=says, argv=argv)
