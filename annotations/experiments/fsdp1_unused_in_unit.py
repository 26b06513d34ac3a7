"""The gradient of a weight that a step did not use, and what AdamW makes of it."""

import json

import torch
import torch.distributed as dist
from torch.distributed import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
dist.init_process_group("gloo")
cpu, mesh = torch.device("cpu"), init_device_mesh("cpu", (2,))


def show(name, wrap, **options):
    """Print of a rank that holds the unused weight: its gradient, and what is left."""
    model = torch.nn.Linear(4, 4)
    model.add_module("unused", torch.nn.Linear(4, 4))
    wrapped = wrap(model, **options)
    named = wrapped.named_parameters()
    weight = next(p for n, p in named if n.endswith("unused.weight"))
    optimizer = torch.optim.AdamW(wrapped.parameters(), lr=0.1, weight_decay=0.5)
    wrapped(torch.ones(1, 4)).sum().backward()
    got = None if weight.grad is None else weight.grad.abs().max().item()
    local = getattr(weight, "to_local", lambda: weight)
    old = local().detach().norm().item()
    optimizer.step()
    left = round(local().detach().norm().item() / old, 3) if old else None
    if dist.get_rank() == 1:
        dist.send_object_list([[got, left]], dst=0)
    else:
        dist.recv_object_list(found := [None], src=1)
        print(name, "=", json.dumps(found[0]))


show("fsdp1", FullyShardedDataParallel, use_orig_params=True, device_id=cpu)
show("fsdp2", fully_shard, mesh=mesh)
show("ddp", DistributedDataParallel, find_unused_parameters=True)
dist.destroy_process_group()
