"""What torch's Muon sends for one matrix whose rows fully_shard dealt out."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.debug import CommDebugMode

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
for name, shape in {"wide": (64, 128), "tall": (128, 64)}.items():
    layer = torch.nn.Linear(shape[1], shape[0], bias=False)
    fully_shard(layer, mesh=mesh)
    layer(torch.randn(4, shape[1])).sum().backward()
    optimizer = torch.optim.Muon([layer.weight])
    with CommDebugMode() as sent:
        optimizer.step()
    calls = {str(op).split(".")[-1]: n for op, n in sent.get_comm_counts().items()}
    if dist.get_rank() == 0:
        print(name, "=", json.dumps(calls))
dist.destroy_process_group()
