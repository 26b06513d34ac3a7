"""A flat parameter of one element, and two microbatches that are both reduced."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel

from mini_impls import fsdp_flat as mini

RANKS = 2
UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
rank = dist.get_rank()


def gradient(model):
    for _ in range(2):  # each adds 1 on rank 0 and 3 on rank 1: a mean of 2
        model(torch.full((1, 1), 1.0 + 2 * rank)).sum().backward()
    return next(model.parameters()).grad.item()


ours = torch.nn.Linear(1, 1, bias=False)
mini.fully_shard_flat(ours, dist.group.WORLD, modules=[""])
theirs = torch.nn.Linear(1, 1, bias=False)
theirs = FullyShardedDataParallel(theirs, device_id=torch.device("cpu"))
right, mini_gradient, torch_gradient = 4.0, gradient(ours), gradient(theirs)
if rank == 0:
    print(f"{right = }\n{mini_gradient = }\n{torch_gradient = }")
