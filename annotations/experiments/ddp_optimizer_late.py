"""What weights become if their optimizer in backward came after the first forward."""

import json

import torch
import torch.distributed as dist
from torch.distributed.optim import _apply_optimizer_in_backward

RANKS = 2

dist.init_process_group("gloo")
rank = dist.get_rank()
layer = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.ones_(layer.weight)
model = torch.nn.parallel.DistributedDataParallel(layer)
given = torch.full((1, 1), 1.0 + rank)
model(given)
_apply_optimizer_in_backward(torch.optim.SGD, layer.parameters(), {"lr": 1.0})
model(given).sum().backward()
weights = [torch.empty(1, 1) for _ in range(2)]
dist.all_gather(weights, layer.weight.detach())
if rank == 0:
    print(f"weights = {json.dumps([weight.item() for weight in weights])}")
    print(f"gradient_left = {layer.weight.grad.item()}")
dist.destroy_process_group()
