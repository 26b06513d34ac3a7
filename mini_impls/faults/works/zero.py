"""What `zero` is set to do."""

from __future__ import annotations

import torch
from torch import Tensor

from mini_impls import model, zero
from mini_impls.demos.zero import bytes_held
from mini_impls.faults.works.data_parallel import Trainee, train_data_parallel
from mini_impls.faults.works.measures import (
    CONFIG,
    STEPS,
    all_grads,
    apart_between_ranks,
    mean_over_ranks,
)
from mini_impls.launch import Rank
from mini_impls.model import build_model, compute_loss, shard_batch


def build_zero(rank: Rank, gpt: model.GPT) -> Trainee:
    """Return stage 1."""
    names = {param: name for name, param in gpt.named_parameters()}
    optimizer = zero.ZeroStage1(
        gpt.parameters(), torch.optim.AdamW, rank.group, lr=3e-3
    )

    def full() -> dict[str, Tensor]:
        return {names[p]: t for p, t in optimizer.full_parameters().items()}

    return Trainee(
        gpt,
        optimizer,
        all_grads(gpt),
        is_sharded=False,
        full=full,
        held=lambda: bytes_held(optimizer),
    )


def train_with_a_scheduler(rank: Rank) -> dict[str, float]:
    """Train by SGD at a rate that torch's scheduler halves after every step."""
    w = rank.world_size
    gpt, alone = build_model(CONFIG), build_model(CONFIG)
    optimizer = zero.ZeroStage1(gpt.parameters(), torch.optim.SGD, rank.group, lr=0.5)
    one_process = torch.optim.SGD(alone.parameters(), lr=0.5)
    scheduler, reference = (
        torch.optim.lr_scheduler.StepLR(each, 1, gamma=0.5)
        for each in (optimizer, one_process)
    )
    losses = []
    for step in range(STEPS):
        batch = model.make_batch(CONFIG, step=step, batch_size=4 * w)
        model.train_one_process(alone, one_process, [batch], chunks=w)
        reference.step()
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=w)
        optimizer.zero_grad()
        loss = compute_loss(gpt(tokens), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(mean_over_ranks(loss.item(), rank.group))
    pairs = zip(gpt.parameters(), alone.parameters(), strict=True)
    apart = max((ours - theirs).abs().max().item() for ours, theirs in pairs)
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "apart from one process": apart,
        "apart between ranks": apart_between_ranks(gpt.parameters(), rank.group),
    }


WORKS = {
    "zero": lambda rank: train_data_parallel(rank, build_zero),
    "zero, a falling rate": train_with_a_scheduler,
}
