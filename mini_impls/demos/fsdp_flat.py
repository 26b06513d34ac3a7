"""Flat parameters: where the cuts fall, beside one process."""

import argparse

import torch
import torch.distributed as dist

from mini_impls import launch
from mini_impls.fsdp_flat import fully_shard_flat
from mini_impls.model import (
    GPTConfig,
    build_model,
    compute_loss,
    reference_run,
    shard_batch,
)
from mini_impls.traffic import CollectiveCounter


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Train beside the one-process run; show where the cuts fall and what was sent."""
    config = GPTConfig()
    reference = reference_run(
        config, steps=args.steps, batch_size=8 * args.world, chunks=args.world
    )
    model = build_model(config).to(rank.device)
    layers = [f"layers.{i}" for i in range(config.num_layers)]
    state = fully_shard_flat(model, rank.group, modules=layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step, batch in enumerate(reference.batches):
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=args.world)
        with CollectiveCounter() as sent:
            optimizer.zero_grad()
            loss = compute_loss(model(tokens.to(rank.device)), labels.to(rank.device))
            loss.backward()
            optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, group=rank.group)
        alone = reference.losses[step]
        rank.say(f"step {step}: loss {mean / args.world:.4f}, one process {alone:.4f}")
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
    rank.say_each(f"one step sent {sent.counts()}, {sent.payload_bytes()} bytes")
    apart = reference.difference(state.full_parameters().items())
    rank.say(f"largest difference of a parameter from the one process: {apart:.1e}")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    return launch.main(demo, description="FSDP with flat parameters.", argv=argv)
