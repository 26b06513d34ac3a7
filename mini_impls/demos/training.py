"""Training beside one process, as the demos of sharded data parallelism share it."""

import torch
import torch.distributed as dist
from torch import nn

from mini_impls.launch import Rank
from mini_impls.model import Reference, compute_loss, shard_batch
from mini_impls.traffic import CollectiveCounter


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
