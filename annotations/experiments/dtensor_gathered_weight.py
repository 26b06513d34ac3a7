"""What placement the gradient of a weight has that a matmul gathered by itself."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
mesh = init_device_mesh("cpu", (4,))
given = DTensor.from_local(torch.ones(64, 8), mesh, [Shard(0)], run_check=False)
weight = DTensor.from_local(
    torch.ones(2, 8), mesh, [Shard(0)], run_check=False
).requires_grad_()
with CommDebugMode() as comm:
    result = given @ weight
print("gathers =", comm.get_total_counts())
result.sum().backward()
print("gradient =", json.dumps(str(weight.grad.placements[0])))
