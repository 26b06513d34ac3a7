"""What `muon` is set to do: owners of whole tensors, and rows of every matrix."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls import model, muon
from mini_impls.demos.muon import hidden_matrices, others
from mini_impls.faults.works.measures import (
    CONFIG,
    STEPS,
    apart_between_ranks,
    bytes_of,
    mean_over_ranks,
    state_of,
)
from mini_impls.launch import Rank
from mini_impls.model import build_model, compute_loss, shard_batch

LR, ADAMW_LR, CLIP = 5e-3, 3e-3, 0.5


class MuonAlone:
    """The same work without the mini, with torch's Muon."""

    def __init__(self, clip: float) -> None:
        self.gpt, self.clip = build_model(CONFIG), clip
        self.both: tuple[torch.optim.Optimizer, ...] = (
            torch.optim.Muon(hidden_matrices(self.gpt), LR),
            torch.optim.AdamW(others(self.gpt), ADAMW_LR),
        )

    def step(self, batch: model.Batch, chunks: int) -> float:
        """Train on a batch in so many parts; return the norm of the gradients."""
        for optimizer in self.both:
            optimizer.zero_grad()
        for rank in range(chunks):
            tokens, labels = shard_batch(batch, rank=rank, world_size=chunks)
            (compute_loss(self.gpt(tokens), labels) / chunks).backward()
        norm = nn.utils.clip_grad_norm_(self.gpt.parameters(), self.clip)
        for optimizer in self.both:
            optimizer.step()
        return norm.item()


def backward_here(rank: Rank, gpt: model.GPT, batch: model.Batch) -> float:
    """Leave mean gradients of all ranks in `gpt`; return the mean loss."""
    gpt.zero_grad()
    here = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
    loss = compute_loss(gpt(here[0]), here[1])
    loss.backward()
    muon.all_reduce_gradients(list(gpt.parameters()), rank.group)
    return mean_over_ranks(loss.item(), rank.group)


def train_owners(rank: Rank) -> dict[str, float]:
    """Train with owners of whole tensors, clipped by the norm of all gradients."""
    gpt, alone = build_model(CONFIG), MuonAlone(CLIP)
    both = (
        muon.Muon(hidden_matrices(gpt), LR),
        torch.optim.AdamW(others(gpt), ADAMW_LR),
    )
    optimizer = muon.LayerWiseDistributedOptimizer(both, rank.group, clip_grad=CLIP)
    losses, ratio = [], 0.0
    for step in range(STEPS):
        batch = model.make_batch(CONFIG, step=step, batch_size=4 * rank.world_size)
        losses.append(backward_here(rank, gpt, batch))
        norm, want = optimizer.step(), alone.step(batch, rank.world_size)
        ratio = ratio or norm / want
    params = [p.detach() for p in gpt.parameters()]
    state = bytes_of(t for each in both for t in state_of(each))
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "norm over one process's": ratio,
        "apart from one process": apart(params, alone),
        "apart between ranks": apart_between_ranks(params, rank.group),
        "bytes of optimizer state": state,
    }


def apart(params: Sequence[Tensor], alone: MuonAlone) -> float:
    """Return how far the parameters are from one process's."""
    pairs = zip(params, alone.gpt.parameters(), strict=True)
    return max((a - b.detach()).abs().max().item() for a, b in pairs)


def train_rows(rank: Rank) -> dict[str, float]:
    """Train matrices of which each rank updates some rows, the last perhaps fewer."""
    gpt, alone, w = build_model(CONFIG), MuonAlone(float("inf")), rank.world_size
    matrices = hidden_matrices(gpt)
    slices, num_rows = [], {}
    for p in matrices:
        rows = -(-len(p) // w)
        start, end = rank.rank * rows, min((rank.rank + 1) * rows, len(p))
        mine = nn.Parameter(p.detach()[min(start, end) : end].clone())
        slices.append((p, mine, start, end))
        num_rows[mine] = len(p)
    rows_muon = muon.RowsMuon(list(num_rows), rank.group, num_rows, lr=LR)
    adamw = torch.optim.AdamW(others(gpt), ADAMW_LR)
    losses = []
    for step in range(STEPS):
        batch = model.make_batch(CONFIG, step=step, batch_size=4 * w)
        losses.append(backward_here(rank, gpt, batch))
        alone.step(batch, w)
        for p, mine, start, end in slices:
            assert p.grad is not None
            mine.grad = p.grad[start:end].clone()
        rows_muon.step()
        adamw.step()
        for p, mine, start, end in slices:
            whole = torch.zeros_like(p)
            whole[start:end] = mine.detach()
            dist.all_reduce(whole, group=rank.group)  # each row is of one rank
            p.data.copy_(whole)
    params = [p.detach() for p in gpt.parameters()]
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "apart from one process": apart(params, alone),
    }


WORKS = {
    "muon": train_owners,
    "muon, rows": train_rows,
}
