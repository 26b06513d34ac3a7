"""What an integer `reshard_after_forward` does where a parameter is cut by columns."""

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
for name, dim in (("rows", 0), ("columns", 1)):
    layer = torch.nn.Linear(8, 8, bias=False)
    fully_shard(
        layer,
        mesh=mesh,
        reshard_after_forward=2,
        shard_placement_fn=lambda parameter, dim=dim: Shard(dim),
    )
    loss = fully_shard(torch.nn.Sequential(layer), mesh=mesh)(torch.ones(1, 8)).sum()
    try:
        loss.backward()
        answer = None
    except IndexError as error:
        answer = type(error).__name__
    print(name, "=", json.dumps(answer))
