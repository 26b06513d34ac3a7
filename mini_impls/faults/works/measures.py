"""Measures that the works of several minis share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls.model import GPTConfig

CONFIG = GPTConfig(hidden_size=32, ffn_hidden_size=64)
STEPS = 8
MICROBATCHES = 8


def apart_between_ranks(tensors: Iterable[Tensor], group: dist.ProcessGroup) -> float:
    """Return the largest difference from rank 0 of what should be one everywhere."""
    worst = 0.0
    for tensor in tensors:
        rank0 = tensor.detach().clone().contiguous()
        dist.broadcast(rank0, group_src=0, group=group)
        worst = max(worst, (tensor.detach() - rank0).abs().max().item())
    return worst


def mean_over_ranks(value: float, group: dist.ProcessGroup) -> float:
    """Return the mean of one number."""
    total = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(total, group=group)
    return total.item() / group.size()


def norm(tensors: Iterable[Tensor]) -> float:
    """Return the norm of all tensors together."""
    return math.sqrt(sum(t.double().square().sum().item() for t in tensors))


def bytes_of(tensors: Iterable[Any]) -> int:
    """Return the bytes of the memory behind tensors, each memory once."""
    memory = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors}
    return sum(memory.values())


def state_of(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Return the tensors that an optimizer keeps."""
    states = optimizer.state.values()
    return [t for state in states for t in state.values() if isinstance(t, Tensor)]


def share_that_agrees(mask: Tensor, group: dist.ProcessGroup) -> float:
    """Return in how many places a mask is rank 0's; on rank 0, rank 1's."""
    masks = [torch.empty_like(mask) for _ in range(group.size())]
    dist.all_gather(masks, mask, group=group)
    other = masks[0 if group.rank() else 1]
    return (mask == other).double().mean().item()


def all_grads(module: nn.Module) -> Callable[[], list[Tensor]]:
    """Return what lists the gradients of a module."""
    return lambda: [p.grad for p in module.parameters() if p.grad is not None]
