"""What `collectives` is set to do."""

from __future__ import annotations

import torch

from mini_impls import collectives
from mini_impls.launch import Rank


def ring_all_reduce(rank: Rank) -> dict[str, float]:
    """Sum a tensor over the ranks by sends to the neighbours."""
    tensor = torch.arange(1024.0) * (rank.rank + 1)
    want = tensor * 0 + torch.arange(1024.0) * sum(range(1, rank.world_size + 1))
    collectives.ring_all_reduce(tensor, rank.group)
    return {"apart from the sum": (tensor - want).abs().max().item()}


WORKS = {
    "collectives": ring_all_reduce,
}
