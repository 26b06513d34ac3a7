"""Parameters that an inner call of fully_shard ignored, below a call on the root."""

import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

RANKS = 2
dist.init_process_group("gloo")
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
bias = model[0].bias
fully_shard(model[0], ignored_params={bias})
fully_shard(model)
with torch.no_grad():
    for parameter in model.parameters():
        parameter.fill_(1.0)
(model(torch.ones(1, 2)) * (dist.get_rank() + 1)).sum().backward()
ignored, apart = ([torch.zeros(2), torch.zeros(2)] for _ in range(2))
dist.all_gather(ignored, bias.grad)
grouped = model[1].bias.grad.full_tensor()
try:
    torch.optim.SGD(model.parameters(), lr=1.0, foreach=True).step()
except RuntimeError as error:
    foreach = "got mixed torch.Tensor and DTensor" in str(error)
torch.optim.SGD(model.parameters(), lr=1.0, foreach=False).step()
dist.all_gather(apart, bias.data)
tied = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
tied[1].weight = tied[0].weight
fully_shard(tied[0], ignored_params={tied[0].weight})
fully_shard(tied)
if dist.get_rank() == 0:
    print("ignored =", [gradient[0].item() for gradient in ignored])
    print("foreach_refuses =", json.dumps(foreach))
    print("apart =", [copy[0].item() for copy in apart])
    print("sharded =", json.dumps(isinstance(bias, DTensor)))
    print("tied_sharded =", json.dumps(isinstance(tied[0].weight, DTensor)))
    print("grouped =", grouped[0].item())
dist.destroy_process_group()
