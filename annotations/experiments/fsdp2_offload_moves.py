"""What fully_shard asks to be moved in two microbatches, and what it waits for."""

import json
from collections import Counter

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

RANKS = 2

calls, moved, to = Counter(), Counter(), torch.Tensor.to


def counted(tensor, *args, **kwargs):
    if "non_blocking" in kwargs:
        # Both are of the CPU here: what the caller would wait for is a gradient.
        way = "rows" if kwargs["non_blocking"] else "gradients, waited for"
        calls[way], moved[way] = calls[way] + 1, moved[way] + tensor.numel()
    return to(tensor, *args, **kwargs)


dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
policy = CPUOffloadPolicy(pin_memory=False)
for part in (*model, model):
    fully_shard(part, mesh=mesh, offload_policy=policy)
torch.Tensor.to = counted
for _ in range(2):
    model(torch.ones(4, 8)).sum().backward()
torch.Tensor.to = to
if dist.get_rank() == 0:
    print("owned =", sum(p.to_local().numel() for p in model.parameters()))
    print("calls =", json.dumps(calls))
    print("moved =", json.dumps(moved))
dist.barrier()
dist.destroy_process_group()
