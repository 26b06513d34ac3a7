"""What torch's Muon does with a matrix that has fewer rows than there are ranks."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
mesh = init_device_mesh("cpu", (4,))
for name, shape in {"wide": (3, 8), "tall": (3, 2), "tall_enough": (4, 2)}.items():
    layer = torch.nn.Linear(shape[1], shape[0], bias=False)
    weight = fully_shard(layer, mesh=mesh).weight
    weight.grad = torch.zeros_like(weight)
    try:
        torch.optim.Muon([weight]).step()
        outcome = "steps"
    except RuntimeError as error:
        outcome = str(error).partition(":")[0] + " raises"
    print(name, "=", json.dumps(outcome))
dist.destroy_process_group()
