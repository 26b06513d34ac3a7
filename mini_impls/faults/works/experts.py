"""What `experts` are set to do: each rank some, or slices, and tokens that travel."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from mini_impls import experts, model
from mini_impls.expert_routing import ExpertsConfig
from mini_impls.faults.works.measures import (
    STEPS,
    apart_between_ranks,
    mean_over_ranks,
    norm,
)
from mini_impls.launch import Rank
from mini_impls.model import compute_loss, shard_batch


def train_experts(rank: Rank, capacity: float | None = None) -> dict[str, float]:
    """Train experts that two groups of ranks share, and all of them in one process.

    A capacity is a factor of the even share.
    """
    w = rank.world_size
    config = ExpertsConfig(
        hidden_size=32, moe_ffn_hidden_size=64, moe_expert_capacity_factor=capacity
    )
    groups = experts.make_groups(rank.group, ep=2, etp=w // 2)
    gpt, alone = (experts.build_moe_model(config) for _ in range(2))
    experts.expert_parallel(gpt, groups, "alltoall")
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    alone_optimizer = torch.optim.AdamW(alone.parameters(), 3e-3)

    def of_experts(model: nn.Module) -> list[Tensor]:
        named = model.named_parameters()
        return [p.grad for n, p in named if ".experts." in n and p.grad is not None]

    losses, ratio = [], 0.0
    for step in range(STEPS):
        batch = model.make_batch(config, step=step, batch_size=4 * w)
        model.train_one_process(alone, alone_optimizer, [batch], chunks=w)
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=w)
        optimizer.zero_grad()
        loss = compute_loss(gpt(tokens), labels)
        loss.backward()
        experts.finish_gradients(gpt, groups)
        optimizer.step()
        losses.append(mean_over_ranks(loss.item(), rank.group))
        if step == 0:
            mine = mean_over_ranks(norm(of_experts(gpt)) ** 2, rank.group) * w
            ratio = math.sqrt(mine) / norm(of_experts(alone))
    dense = [p for n, p in gpt.named_parameters() if ".experts." not in n]
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "gradient over one process's": ratio,
        "apart between ranks": apart_between_ranks(dense, rank.group),
    }


WORKS = {
    "experts": train_experts,
    "experts, with a capacity": lambda rank: train_experts(rank, 1.0),
}
