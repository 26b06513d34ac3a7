"""What `compression` is set to do: training, and the sum of all that was sent."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from mini_impls import compression, model
from mini_impls.faults.works.measures import (
    CONFIG,
    STEPS,
    apart_between_ranks,
    mean_over_ranks,
    norm,
)
from mini_impls.launch import Rank
from mini_impls.model import build_model, compute_loss, shard_batch

LR, SHARE = 0.3, 0.1


def train_compressed(rank: Rank, compress: compression.Compressor) -> dict[str, float]:
    """Train by SGD, beside the gradients of one process at the same weights.

    What came out of the steps, and what the ranks still keep back, is what went in.
    """
    w, gpt = rank.world_size, build_model(CONFIG)
    wrapped = compression.CompressedDataParallel(gpt, rank.group, compress)
    params = list(gpt.parameters())
    optimizer = torch.optim.SGD(params, LR)
    start = [p.detach().clone() for p in params]
    went_in, came_out = ([torch.zeros_like(p) for p in params] for _ in range(2))
    losses, ratio = [], 0.0
    for step in range(STEPS):
        batch = model.make_batch(CONFIG, step=step, batch_size=4 * w)
        alone = torch.autograd.grad(compute_loss(gpt(batch[0]), batch[1]), params)
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=w)
        optimizer.zero_grad(set_to_none=False)
        loss = compute_loss(wrapped(tokens), labels)
        loss.backward()
        losses.append(mean_over_ranks(loss.item(), rank.group))
        grads = [p.grad for p in params if p.grad is not None]
        add(went_in, alone)
        add(came_out, grads)
        ratio = ratio or norm(grads) / norm(alone)
        optimizer.step()
    add(came_out, kept_back(rank, wrapped, params))
    apart = norm(a - b for a, b in zip(came_out, went_in, strict=True))
    moved = zip(params, start, strict=True)
    unmoved = sum((p.detach() == at).sum().item() for p, at in moved)
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "gradient over one process's": ratio,
        "distance of the gradient from one process's": apart / norm(went_in),
        "apart between ranks": apart_between_ranks(params, rank.group),
        "share of weights that never moved": unmoved / sum(p.numel() for p in params),
    }


def add(totals: list[Tensor], tensors: list[Tensor] | tuple[Tensor, ...]) -> None:
    """Add to each total."""
    for total, tensor in zip(totals, tensors, strict=True):
        total += tensor


def kept_back(
    rank: Rank,
    wrapped: compression.CompressedDataParallel,
    params: list[torch.nn.Parameter],
) -> list[Tensor]:
    """Return the mean over the ranks of what each has not sent, by parameter."""
    error, bucket = getattr(wrapped.compress, "error", None), wrapped.bucket
    assert bucket is not None
    if error is None:
        return [torch.zeros_like(p) for p in params]
    mean = error.clone()
    dist.all_reduce(mean, group=rank.group)
    order = list(bucket.gradient_of)
    pieces = (mean / rank.world_size).split([p.numel() for p in order])
    of = {p: piece.view_as(p) for p, piece in zip(order, pieces, strict=True)}
    return [of[p] for p in params]


WORKS = {
    "compression, float16": lambda rank: train_compressed(
        rank, compression.all_reduce_as(torch.float16)
    ),
    "compression, uint8": lambda rank: train_compressed(
        rank, compression.all_gather_uint8
    ),
    "compression, top-k": lambda rank: train_compressed(rank, compression.TopK(SHARE)),
    "compression, PowerSGD": lambda rank: train_compressed(
        rank, compression.PowerSGD(2)
    ),
}
