"""Collectives from sends beside the backend's own, then a training with one of them."""

import argparse
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from mini_impls import launch
from mini_impls.collectives import (
    ReduceOp,
    cost,
    halving_doubling_all_reduce,
    naive_all_reduce,
    ring_all_reduce,
)
from mini_impls.model import (
    GPTConfig,
    build_model,
    compute_loss,
    reference_run,
    shard_batch,
)
from mini_impls.traffic import CollectiveCounter


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Compare every algorithm with the backend's own, then train with one of them."""
    group, world_size = rank.group, rank.world_size
    generator = torch.Generator().manual_seed(rank.rank)
    data = torch.randn(args.numel, generator=generator).to(rank.device)
    want = data.clone()
    dist.all_reduce(want, group=group)
    algorithms: list[Callable[[Tensor, dist.ProcessGroup], None]] = [
        naive_all_reduce,
        ring_all_reduce,
        halving_doubling_all_reduce,
    ]
    for all_reduce in algorithms:
        got = data.clone()
        with CollectiveCounter() as sent:
            all_reduce(got, group)
        rounds, elements = cost(all_reduce.__name__, args.numel, rank.rank, world_size)
        rank.say_each(
            f"{all_reduce.__name__}: {rounds} rounds, sent "
            f"{sent.payload_bytes().get('send', 0)} bytes (formula "
            f"{elements * data.element_size()}), largest difference from "
            f"{args.backend} {(got - want).abs().max().item():.1e}"
        )

    config = GPTConfig()
    reference = reference_run(
        config, steps=args.steps, batch_size=4 * world_size, chunks=world_size
    )
    model = build_model(config).to(rank.device)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for step, batch in enumerate(reference.batches):
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=world_size)
        loss = compute_loss(model(tokens.to(rank.device)), labels.to(rank.device))
        optimizer.zero_grad()
        loss.backward()
        for param in model.parameters():
            assert param.grad is not None
            ring_all_reduce(param.grad, group, ReduceOp.AVG)
        optimizer.step()
        mean = loss.detach().view(1)
        ring_all_reduce(mean, group, ReduceOp.AVG)
        alone = reference.losses[step]
        rank.say(f"step {step}: loss {mean.item():.4f}, one process {alone:.4f}")
    apart = reference.difference(model.named_parameters())
    rank.say(f"largest difference of a parameter from the one process: {apart:.1e}")


def check(args: argparse.Namespace) -> None:
    """Raise ValueError for a tensor with nothing in it."""
    if args.numel < 1:
        raise ValueError(f"--numel {args.numel} is below 1")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    options = {"numel": (1000, "elements of the tensor (default 1000)")}
    return launch.main(
        demo,
        description="Collectives from sends.",
        check=check,
        options=options,
        argv=argv,
    )
