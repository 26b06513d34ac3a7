"""What `fsdp_state` is set to do: a clipped step."""

from __future__ import annotations

import torch
from torch import nn

from mini_impls import fsdp_state, model
from mini_impls.demos.fsdp_state import train_step
from mini_impls.faults.works.measures import CONFIG, STEPS
from mini_impls.launch import Rank
from mini_impls.model import build_model, compute_loss


def train_clipped(rank: Rank) -> dict[str, float]:
    """Train on shards of rows, clipped by the norm of all gradients."""
    w = rank.world_size
    gpt, alone = build_model(CONFIG), build_model(CONFIG)
    shards = {
        name: fsdp_state.shard_rows(p, rank.group) for name, p in gpt.named_parameters()
    }
    optimizer = torch.optim.SGD([shard.param for shard in shards.values()], 0.1)
    one_process = torch.optim.SGD(alone.parameters(), 0.1)
    losses, ratio = [], 0.0
    for step in range(STEPS):
        batch = model.make_batch(CONFIG, step=step, batch_size=4 * w)
        loss, norm_here = train_step(
            gpt, shards, optimizer, batch, rank.group, max_norm=0.5
        )
        losses.append(loss)
        one_process.zero_grad()
        compute_loss(alone(batch[0]), batch[1]).backward()
        want = nn.utils.clip_grad_norm_(alone.parameters(), 0.5)
        one_process.step()
        ratio = ratio or norm_here / want.item()
    full = dict(alone.named_parameters())
    apart = max(
        (s.param - full[name][s.start : s.start + len(s.param)]).abs().max().item()
        for name, s in shards.items()
    )
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "norm over one process's": ratio,
        "apart from one process": apart,
    }


WORKS = {
    "fsdp_state, clipped": train_clipped,
}
