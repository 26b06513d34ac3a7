"""What `mixed_precision` is set to do: in float16, in bfloat16, with slices."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mini_impls import model
from mini_impls.faults.works.measures import (
    CONFIG,
    STEPS,
    apart_between_ranks,
    mean_over_ranks,
)
from mini_impls.launch import Rank
from mini_impls.mixed_precision import (
    Float16Module,
    Float16Optimizer,
    MainGrads,
    train_step,
)
from mini_impls.mixed_precision_scaler import DynamicGradScaler
from mini_impls.model import build_model, compute_loss, shard_batch

SCALE, GROWTH, INTERVAL = 2.0**12, 16.0, 2
CLIP = 1e3
"""More than any norm: it is known, and nothing is shortened."""


def train_half(
    rank: Rank, dtype: torch.dtype, learning_rate: float
) -> dict[str, float]:
    """Train in `dtype`, beside one process with torch's scaler and AdamW."""
    w = rank.world_size
    gpt, alone = build_model(CONFIG), OneProcess(dtype, learning_rate)
    scaler = None
    if dtype is torch.float16:
        scaler = DynamicGradScaler(
            SCALE,
            growth_factor=GROWTH,
            backoff_factor=1 / GROWTH,
            growth_interval=INTERVAL,
            hysteresis=1,
        )
    module = Float16Module(gpt, dtype)
    optimizer = Float16Optimizer(
        torch.optim.AdamW(gpt.parameters(), learning_rate),
        MainGrads(gpt.parameters(), rank.group),
        scaler,
        clip_grad=CLIP,
    )
    mains = list(optimizer.main_params.values())
    start = [main.clone() for main in mains]
    losses, ratio = [], 0.0
    for step in range(STEPS):
        batch = model.make_batch(CONFIG, step=step, batch_size=4 * w)
        want = alone.step(batch, w)
        here = shard_batch(batch, rank=rank.rank, world_size=w)
        loss, _, norm_here = train_step(module, optimizer, [here])
        losses.append(mean_over_ranks(loss, rank.group))
        if norm_here is not None:
            ratio = ratio or norm_here / want
    pairs = zip(mains, alone.mains, strict=True)
    apart = max((a - b).abs().max().item() for a, b in pairs)
    unmoved = sum((a == b).sum().item() for a, b in zip(mains, start, strict=True))
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "norm over one process's": ratio,
        "apart from one process": apart,
        "apart between ranks": apart_between_ranks(mains, rank.group),
        "share of weights that never moved": unmoved / sum(m.numel() for m in mains),
    }


class OneProcess:
    """The same work without the mini."""

    def __init__(self, dtype: torch.dtype, learning_rate: float) -> None:
        self.gpt = build_model(CONFIG).to(dtype)
        self.params = list(self.gpt.parameters())
        self.mains = [nn.Parameter(p.detach().float()) for p in self.params]
        self.optimizer = torch.optim.AdamW(self.mains, learning_rate)
        self.scaler = torch.amp.GradScaler(
            "cpu",
            SCALE,
            GROWTH,
            1 / GROWTH,
            growth_interval=INTERVAL,
            enabled=dtype is torch.float16,
        )

    def step(self, batch: model.Batch, chunks: int) -> float:
        """Train on a batch in so many parts; return the norm of the gradients."""
        for main in self.mains:
            main.grad = torch.zeros_like(main)
        for rank in range(chunks):
            tokens, labels = shard_batch(batch, rank=rank, world_size=chunks)
            loss = self.scaler.scale(compute_loss(self.gpt(tokens).float(), labels))
            grads = torch.autograd.grad(loss, self.params)
            for main, grad in zip(self.mains, grads, strict=True):
                assert main.grad is not None
                main.grad += grad.float() * (1 / chunks)
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.mains, float("inf"))
        self.scaler.step(self.optimizer)
        self.scaler.update()
        with torch.no_grad():
            for param, main in zip(self.params, self.mains, strict=True):
                param.copy_(main)
        return norm.item()


def train_slices(rank: Rank) -> dict[str, float]:
    """Train parameters of each rank's own, of which one overflows now and then."""
    own = nn.Parameter(torch.zeros(4, dtype=torch.float16))
    scaler = DynamicGradScaler(SCALE, hysteresis=1)
    optimizer = Float16Optimizer(
        torch.optim.SGD([own], 0.1), MainGrads([own]), scaler, rank.group
    )
    updates = torch.zeros(1)
    for step in range(STEPS):
        optimizer.zero_grad()
        overflows = rank.rank == rank.world_size - 1 and step % 2
        loss = (own * (1e4 if overflows else 1e-4)).sum()
        optimizer.scale_loss(loss).backward()
        updates += optimizer.step()[0]
    known: list[Tensor] = [updates, scaler.scale]
    return {"apart between ranks": apart_between_ranks(known, rank.group)}


WORKS = {
    "mixed_precision": lambda rank: train_half(rank, torch.float16, 3e-3),
    "mixed_precision, in bf16": lambda rank: train_half(rank, torch.bfloat16, 1e-5),
    "mixed_precision, slices": train_slices,
}
