"""A step of FSDP2 resharded to two of four ranks, the weight cut by rows or columns."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
mesh = init_device_mesh("cpu", (4,))


def step(dim):
    layer = torch.nn.Linear(8, 8, bias=False)
    cut = {"shard_placement_fn": lambda param: Shard(dim)}
    fully_shard(layer, mesh=mesh, reshard_after_forward=2, **cut)
    output = layer(torch.ones(2, 8, requires_grad=True))
    (param,) = layer._get_fsdp_state()._fsdp_param_group.fsdp_params
    slices.append(param._sharded_post_forward_param_data.numel())
    try:
        output.sum().backward()
    except IndexError as error:
        return f"IndexError: {error}"
    return "trained"


slices = []
print("rows =", json.dumps(step(0)))
print("columns =", json.dumps(step(1)))
print("slices =", slices)
