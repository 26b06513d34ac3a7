"""Training beside one process, as the demos of sharded data parallelism share it."""

from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist
from torch import nn

from mini_impls.launch import Rank
from mini_impls.model import (
    Batch,
    GPTConfig,
    Reference,
    build_model,
    compute_loss,
    make_batch,
    shard_batch,
    train_one_process,
)
from mini_impls.traffic import CollectiveCounter

ALONE = "one process alone, step"


def counted(
    rank: Rank, batches: Sequence[Batch], doing: str = "step"
) -> Iterator[Batch]:
    """Yield the batches, and tell a person who waits how many are done."""
    for done, batch in enumerate(batches):
        rank.show(doing, done, len(batches))
        yield batch


def train_alone(
    rank: Rank, config: GPTConfig, *, steps: int, batch_size: int, chunks: int
) -> Reference:
    """Return the run of one process, as `reference_run` does, each step told."""
    batches = [make_batch(config, step=i, batch_size=batch_size) for i in range(steps)]
    model = build_model(config)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    told = counted(rank, batches, ALONE)
    losses = train_one_process(model, optimizer, told, chunks=chunks)
    return Reference(batches, losses, model)


def train_beside(
    reference: Reference, rank: Rank, model: nn.Module, optimizer: torch.optim.Optimizer
) -> CollectiveCounter:
    """Return what the last step sent; say each loss beside that of one process.

    Whatever the gradients need happens within backward: the step is one process's.
    """
    for step, batch in enumerate(reference.batches):
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        sent = CollectiveCounter()
        with sent:
            optimizer.zero_grad()
            loss = compute_loss(model(tokens.to(rank.device)), labels.to(rank.device))
            loss.backward()
            optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, group=rank.group)
        mean /= rank.world_size
        alone = reference.losses[step]
        rank.say(f"step {step}: loss {mean:.4f}, one process {alone:.4f}")
    return sent
