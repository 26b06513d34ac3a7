"""What the mini moves in two microbatches of the model of fsdp2_offload_moves."""

import json

import torch
import torch.distributed as dist

from mini_impls.offload import HostLink
from mini_impls.offload_states import OffloadedModel

RANKS = 2
UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
link = HostLink(torch.device("cpu"))
OffloadedModel(model, dist.group.WORLD, link, modules=["0", "1"])
for _ in range(2):
    model(torch.ones(4, 8)).sum().backward()
if dist.get_rank() == 0:
    print("owned =", sum(p.numel() for p in model.parameters()))
    print("moved =", json.dumps({way: n // 4 for way, n in link.moved.items()}))
link.close()
dist.barrier()
dist.destroy_process_group()
