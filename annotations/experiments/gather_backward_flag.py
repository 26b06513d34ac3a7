"""Both values of `tensor_parallel_output_grad`, before sharded and repeated work."""

import json

import torch
import torch.distributed as dist
from megatron.core.tensor_parallel.mappings import gather_from_sequence_parallel_region

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
rank = dist.get_rank()


def gradient(flag: bool, weight: float) -> float:
    """Return this rank's gradient after work that multiplies by its weight."""
    x = torch.ones(1, 1, requires_grad=True)
    whole = gather_from_sequence_parallel_region(x, flag, dist.group.WORLD)
    (whole * weight).sum().backward()
    return x.grad.item()


# Repeated work: every rank multiplies by 5. Sharded: the weight is 2 + 3, one on each.
figures = {
    "repeated_true": gradient(True, 5.0),
    "repeated_false": gradient(False, 5.0),
    "sharded_true": gradient(True, 2.0 + rank),
    "sharded_false": gradient(False, 2.0 + rank),
}
for name, value in figures.items():
    if rank == 0:
        print(f"{name} = {json.dumps(value)}")
dist.destroy_process_group()
