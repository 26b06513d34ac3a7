"""Times of what runs on every rank at once."""

import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from mini_impls.launch import Rank


def seconds(rank: Rank, work: Callable[[], object]) -> float:
    """Return how long the slowest rank took, all having started together."""
    dist.barrier(rank.group)
    start = time.perf_counter()
    work()
    if rank.device.type == "cuda":
        torch.cuda.synchronize(rank.device)
    took = torch.tensor(
        time.perf_counter() - start, dtype=torch.float64, device=rank.device
    )
    dist.all_reduce(took, op=dist.ReduceOp.MAX, group=rank.group)
    return float(took)
