"""What `collectives` is set to do."""

from __future__ import annotations

import torch

from mini_impls import collectives
from mini_impls.faults.works.measures import apart_between_ranks
from mini_impls.launch import Rank


def ring_all_reduce(rank: Rank) -> dict[str, float]:
    """Sum a tensor over the ranks by sends to the neighbours."""
    tensor = torch.arange(1024.0) * (rank.rank + 1)
    want = tensor * 0 + torch.arange(1024.0) * sum(range(1, rank.world_size + 1))
    collectives.ring_all_reduce(tensor, rank.group)
    return {"apart from the sum": (tensor - want).abs().max().item()}


def reduce_uneven(rank: Rank) -> dict[str, float]:
    """Sum a tensor that the ranks do not divide, beside one process that adds up."""
    data = [torch.arange(1025.0) * (r + 1) for r in range(rank.world_size)]
    tensor = data[rank.rank].clone()
    collectives.ring_all_reduce(tensor, rank.group)
    want = torch.stack(data).sum(0)  # whole numbers: every order is exact
    return {
        "apart from one process": (tensor - want).abs().max().item(),
        "apart between ranks": apart_between_ranks([tensor], rank.group),
    }


WORKS = {
    "collectives": ring_all_reduce,
    "collectives, uneven": reduce_uneven,
}
