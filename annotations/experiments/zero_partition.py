"""How ZeroRedundancyOptimizer deals out tensors, and what a step broadcasts."""

import json

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer

RANKS = 2

dist.init_process_group("gloo")
broadcast = dist.broadcast


def show(name, sizes, **options):
    params = [torch.nn.Parameter(torch.ones(size)) for size in sizes]
    optimizer = ZeroRedundancyOptimizer(params, torch.optim.SGD, lr=0.1, **options)
    for param in params:
        param.grad = torch.ones_like(param)
    sent = []

    def noting(tensor, **kwargs):
        sent.append(tensor.numel())
        return broadcast(tensor, **kwargs)

    dist.broadcast = noting
    optimizer.step()
    dist.broadcast = broadcast
    dealt = [ranks[0]["params"] for ranks in optimizer._partition_parameters()]
    elements = [sum(p.numel() for p in own) for own in dealt]
    if dist.get_rank() == 0:
        figure = {"elements": elements, "broadcasts": sorted(sent)}
        print(name, "=", json.dumps(figure))


show("tensors", [1, 20, 30, 40, 100])
show("bucket_view", [1, 20, 30, 40, 100], parameters_as_bucket_view=True)
show("one_tensor", [7])
dist.destroy_process_group()
