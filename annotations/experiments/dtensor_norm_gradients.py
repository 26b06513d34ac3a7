"""All-reduces of one optimizer step of a LayerNorm that SequenceParallel spread."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import SequenceParallel, parallelize_module

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
torch.manual_seed(dist.get_rank())


def step(optimizer, **options):
    norm = parallelize_module(torch.nn.LayerNorm(4), mesh, SequenceParallel())
    norm(torch.randn(1, 2, 4)).to_local().square().sum().backward()
    optimizer = getattr(torch.optim, optimizer)(norm.parameters(), **options)
    with CommDebugMode() as comm:
        optimizer.step()
    return comm.get_total_counts(), str(norm.weight.grad.placements[0]), norm


for name in ("SGD", "Adam", "AdamW"):
    count, placement, norm = step(name, lr=0.1)
    print(f"{name.lower()}_all_reduces = {count}") if dist.get_rank() == 0 else None
odd = torch.nn.LayerNorm(4)
torch.nn.init.normal_(odd.weight)
odd = parallelize_module(odd, mesh, SequenceParallel())
copies = [torch.empty(4) for _ in range(2)]
dist.all_gather(copies, odd.weight.to_local().detach())
if dist.get_rank() == 0:
    print("gradient =", json.dumps(placement))
    print("labelled =", json.dumps(str(odd.weight.placements[0])))
    print("equal_copies =", json.dumps(torch.equal(*copies)))
