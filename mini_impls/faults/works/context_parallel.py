"""What `context_parallel` and `ring_attention` are set to do."""

from __future__ import annotations

import torch

from mini_impls import context_parallel, context_parallel_model, model, ring_attention
from mini_impls.faults.works.measures import (
    CONFIG,
    STEPS,
    all_grads,
    apart_between_ranks,
    norm,
)
from mini_impls.launch import Rank
from mini_impls.model import build_model, compute_loss


def train_context_parallel(
    rank: Rank, attention: context_parallel_model.Attention
) -> dict[str, float]:
    """Train a model whose sequences are cut, in one way to attend."""
    gpt, alone = build_model(CONFIG), build_model(CONFIG)
    context_parallel_model.context_parallel(gpt, attention, rank.group)
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    batches = [model.make_batch(CONFIG, step=i, batch_size=4) for i in range(STEPS)]
    losses = context_parallel_model.train(gpt, optimizer, batches[:1], rank.group)
    compute_loss(alone(batches[0][0]), batches[0][1]).backward()
    both = [all_grads(each)() for each in (gpt, alone)]
    mine, want = map(norm, both)
    apart = norm(a - b for a, b in zip(*both, strict=True))
    losses += context_parallel_model.train(gpt, optimizer, batches[1:], rank.group)
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "gradient over one process's": mine / want,
        "distance of the gradient from one process's": apart / want,
        "apart between ranks": apart_between_ranks(gpt.parameters(), rank.group),
    }


WORKS = {
    "context_parallel, all-gather": lambda rank: train_context_parallel(
        rank, context_parallel.all_gather_attention
    ),
    "context_parallel, Ulysses": lambda rank: train_context_parallel(
        rank, context_parallel.ulysses_attention
    ),
    "context_parallel, ring": lambda rank: train_context_parallel(
        rank, ring_attention.ring_attention
    ),
}
