"""What torch's GradScaler does when rank 0's part of a DTensor overflows."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

RANKS = 2
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))


def step(*placements):
    """Whether each rank updated, for parameters in this order."""
    params = []
    for placement in placements:
        param = distribute_tensor(torch.ones(4), mesh, [placement])
        param = torch.nn.Parameter(param)
        param.grad = distribute_tensor(torch.ones(4), mesh, [placement])
        params.append(param)
        if placement.is_shard() and dist.get_rank() == 0:
            param.grad.to_local().fill_(float("inf"))
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(1))
    scaler.step(torch.optim.SGD(params, 0.5))
    scaler.update()
    updated = [None, None]
    dist.all_gather_object(updated, params[0].to_local()[0].item() != 1.0)
    return updated


shards, mixed = step(Shard(0)), step(Replicate(), Shard(0))
turned = step(Shard(0), Replicate())
if dist.get_rank() == 0:
    print("shards =", json.dumps(shards), "\nreplica_first =", json.dumps(mixed))
    print("shard_first =", json.dumps(turned))
dist.destroy_process_group()
