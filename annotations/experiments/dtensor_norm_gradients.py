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
figures = {"all_reduces": {}, "foreach": {}}


def same(tensor):
    copies = [torch.empty(4) for _ in range(2)]
    dist.all_gather(copies, tensor.to_local().detach())
    return torch.equal(*copies)


for name in ("SGD", "Adam", "AdamW") * 2:
    kind = "foreach" if name in figures["all_reduces"] else "all_reduces"
    norm = torch.nn.LayerNorm(4).requires_grad_(False)
    torch.nn.init.normal_(norm.weight)
    norm = parallelize_module(norm, mesh, SequenceParallel())
    figures.update(labelled=str(norm.weight.placements[0]), equal=same(norm.weight))
    figures["frozen_is_trained"] = norm.weight.requires_grad
    norm(torch.randn(1, 2, 4)).to_local().square().sum().backward()
    figures["gradient"] = str(norm.weight.grad.placements[0])
    optimizer = getattr(torch.optim, name)(norm.parameters(), foreach=kind == "foreach")
    with CommDebugMode() as comm:
        optimizer.step()
    figures[kind][name] = comm.get_total_counts()
    figures["equal_after_a_step"] = same(norm.weight)
if dist.get_rank() == 0:
    print("\n".join(f"{name} = {json.dumps(it)}" for name, it in figures.items()))
dist.destroy_process_group()
