"""What a row-parallel product with a bias holds on each rank before its reduction."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
x = distribute_tensor(torch.ones(2, 4), mesh, [Shard(1)])
weight = distribute_tensor(torch.ones(4, 4), mesh, [Shard(1)])
bias = distribute_tensor(torch.full((4,), 8.0), mesh, [Replicate()])
with CommDebugMode() as comm:
    product = torch.nn.functional.linear(x, weight, bias)
local = [None, None]
dist.all_gather_object(local, product.to_local()[0, 0].item())
total = product.full_tensor()[0, 0].item()
if dist.get_rank() == 0:
    print("placement =", json.dumps(str(product.placements[0])))
    print("collectives =", comm.get_total_counts())
    print("local =", json.dumps(local), "\ntotal =", total)
dist.destroy_process_group()
