"""Ranks with rows of their own, beside one process with all rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mini_impls import model
from mini_impls.faults.overlap import Overlap
from mini_impls.faults.symptoms import HELD, UNDER_WAY
from mini_impls.faults.works.measures import (
    CONFIG,
    STEPS,
    apart_between_ranks,
    mean_over_ranks,
    norm,
)
from mini_impls.launch import Rank
from mini_impls.model import build_model, compute_loss, shard_batch


@dataclass
class Trainee:
    """A model under one of the data-parallel minis."""

    forward: Callable[[Tensor], Tensor]
    optimizer: Any
    gradients: Callable[[], list[Tensor]]
    """What the optimizer has read: shards where they are sharded."""
    is_sharded: bool
    full: Callable[[], Mapping[str, Tensor]]
    held: Callable[[], dict[str, int]]


def train_data_parallel(
    rank: Rank,
    build: Callable[[Rank, model.GPT], Trainee],
    *,
    learning_rate: float = 3e-3,
) -> dict[str, float]:
    """Train on this rank's rows, and in one process on all of them."""
    w = rank.world_size
    gpt, alone = build_model(CONFIG), build_model(CONFIG)
    optimizer = torch.optim.AdamW(alone.parameters(), learning_rate)
    trainee = build(rank, gpt)
    start = {name: t.detach().clone() for name, t in trainee.full().items()}
    losses, ratio = [], 0.0
    for step in range(STEPS):
        batch = model.make_batch(CONFIG, step=step, batch_size=4 * w)
        model.train_one_process(alone, optimizer, [batch], chunks=w)
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=w)
        trainee.optimizer.zero_grad()
        loss = compute_loss(trainee.forward(tokens), labels)
        with Overlap() as seen:
            loss.backward()
        trainee.optimizer.step()
        losses.append(mean_over_ranks(loss.item(), rank.group))
        if step == 0:
            mine = norm(trainee.gradients())
            if trainee.is_sharded:
                mine = math.sqrt(mean_over_ranks(mine**2, rank.group) * w)
            want = norm(p.grad for p in alone.parameters() if p.grad is not None)
            ratio = mine / want
    full = {name: tensor.detach().float() for name, tensor in trainee.full().items()}
    want_full = dict(alone.named_parameters())
    apart = max((full[n] - p.detach()).abs().max().item() for n, p in want_full.items())
    unmoved = sum((full[n] == start[n].float()).sum().item() for n in want_full)
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "gradient over one process's": ratio,
        "apart from one process": apart,
        "apart between ranks": apart_between_ranks(full.values(), rank.group),
        "share of weights that never moved": unmoved
        / sum(p.numel() for p in want_full.values()),
        **{HELD[what]: float(n) for what, n in trainee.held().items()},
        UNDER_WAY: float(seen.hidden.total()),
    }
