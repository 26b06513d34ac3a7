"""Collectives from sends beside the backend's own, then a training with one of them."""

import argparse
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.distributed as dist
from torch import Tensor

from mini_impls import collectives, collectives_log, launch
from mini_impls.collectives import ReduceOp, ring_all_reduce
from mini_impls.collectives_log import cost
from mini_impls.demos.expected import FLOAT32, peak_bytes, replicated
from mini_impls.demos.training import counted, train_alone
from mini_impls.model import (
    build_model,
    compute_loss,
    shard_batch,
)
from mini_impls.traffic import CollectiveCounter

ROWS = 4
"""Sequences of each rank."""

Group = dist.ProcessGroup
Collective = Callable[[Tensor, Group], Tensor]
"""Takes a tensor that it may overwrite, returns what this rank has in the end."""


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Compare every algorithm with the backend's own, then train with one of them."""
    compare(rank, args.numel, args.backend)
    train(rank, args.steps)


# --- every algorithm ---


def in_place(all_reduce: Callable[[Tensor, Group], None]) -> Collective:
    """Return an all-reduce that also returns its tensor."""

    def call(tensor: Tensor, group: Group) -> Tensor:
        all_reduce(tensor, group)
        return tensor

    return call


def backend_all_reduce(tensor: Tensor, group: Group) -> Tensor:
    """All-reduce by the backend."""
    dist.all_reduce(tensor, group=group)
    return tensor


def ring_reduce_scatter(tensor: Tensor, group: Group) -> Tensor:
    """Reduce-scatter by the mini."""
    return collectives.ring_reduce_scatter(tensor.chunk(group.size()), group)


def pipelined_ring_reduce_scatter(tensor: Tensor, group: Group) -> Tensor:
    """Reduce-scatter by the mini, with two rounds in flight."""
    chunks = tensor.chunk(group.size())
    return collectives.pipelined_ring_reduce_scatter(chunks, group)


def backend_reduce_scatter(tensor: Tensor, group: Group) -> Tensor:
    """Reduce-scatter by the backend."""
    mine = tensor.new_empty(tensor.numel() // group.size())
    dist.reduce_scatter_single(mine, tensor, group=group)
    return mine


def ring_all_gather(tensor: Tensor, group: Group) -> Tensor:
    """All-gather by the mini; of the tensor only this rank's chunk counts."""
    collectives.ring_all_gather(tensor.chunk(group.size()), group)
    return tensor


def backend_all_gather(tensor: Tensor, group: Group) -> Tensor:
    """All-gather by the backend."""
    mine = tensor.chunk(group.size())[group.rank()].clone()
    dist.all_gather_single(tensor, mine, group=group)
    return tensor


def tree_broadcast(tensor: Tensor, group: Group) -> Tensor:
    """Broadcast from rank 0 by the mini."""
    collectives_log.tree_broadcast(tensor, 0, group)
    return tensor


def backend_broadcast(tensor: Tensor, group: Group) -> Tensor:
    """Broadcast from rank 0 by the backend."""
    dist.broadcast(tensor, group_src=0, group=group)
    return tensor


def pairwise_all_to_all(tensor: Tensor, group: Group) -> Tensor:
    """All-to-all by the mini."""
    received, w = torch.empty_like(tensor), group.size()
    collectives.pairwise_all_to_all(received.chunk(w), tensor.chunk(w), group)
    return received


def backend_all_to_all(tensor: Tensor, group: Group) -> Tensor:
    """All-to-all by the backend."""
    received = torch.empty_like(tensor)
    dist.all_to_all_single(received, tensor, group=group)
    return received


ALGORITHMS: dict[str, tuple[Collective, Collective]] = {
    "naive_all_reduce": (in_place(collectives.naive_all_reduce), backend_all_reduce),
    "ring_all_reduce": (in_place(ring_all_reduce), backend_all_reduce),
    "halving_doubling_all_reduce": (
        in_place(collectives_log.halving_doubling_all_reduce),
        backend_all_reduce,
    ),
    "tree_all_reduce": (
        in_place(collectives_log.tree_all_reduce),
        backend_all_reduce,
    ),
    "ring_reduce_scatter": (ring_reduce_scatter, backend_reduce_scatter),
    "pipelined_ring_reduce_scatter": (
        pipelined_ring_reduce_scatter,
        backend_reduce_scatter,
    ),
    "ring_all_gather": (ring_all_gather, backend_all_gather),
    "tree_broadcast": (tree_broadcast, backend_broadcast),
    "pairwise_all_to_all": (pairwise_all_to_all, backend_all_to_all),
}
"""By the names that `cost` knows."""


def compare(rank: launch.Rank, numel: int, backend: str) -> None:
    """Say what each algorithm sends, and how far it ends from the backend's own."""
    group, world_size = rank.group, rank.world_size
    numel = -(-numel // world_size) * world_size  # backends cut evenly
    rank.say(f"{numel} elements on each of {world_size} ranks")
    generator = torch.Generator().manual_seed(rank.rank)
    data = torch.randn(numel, generator=generator).to(rank.device)
    for name, (mini, theirs) in ALGORITHMS.items():
        want = theirs(data.clone(), group)
        with CollectiveCounter() as sent:
            got = mini(data.clone(), group)
        sends = sent.counts().get("send", 0)
        rounds, elements = cost(name, numel, rank.rank, world_size)
        rank.say_each(
            f"{name}: {rounds} rounds, {sends} with a send, sent "
            f"{sent.payload_bytes().get('send', 0)} bytes (formula "
            f"{elements * data.element_size()}), largest difference from "
            f"{backend} {(got - want).abs().max().item():.1e}"
        )


# --- a training with one of them ---


def train(rank: launch.Rank, steps: int) -> None:
    """Average gradients by the ring, parameter by parameter."""
    group, world_size = rank.group, rank.world_size
    reference = train_alone(rank, steps, rows=ROWS)
    config = reference.model.config
    model = build_model(config).to(rank.device)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    sizes = [param.numel() for param in model.parameters()] + [1]  # and the loss
    elements = (cost("ring_all_reduce", n, rank.rank, world_size)[1] for n in sizes)
    peak = peak_bytes(config, rows=ROWS, dp=world_size)
    due = replicated(config, rows=ROWS, payloads=(), peak=peak)
    rank.recorder.expect(replace(due, sent_bytes=float(FLOAT32 * sum(elements))))
    for step, batch in enumerate(counted(rank, reference.batches)):
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
