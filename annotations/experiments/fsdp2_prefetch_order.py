"""What an evaluation between two steps does to FSDP2's prefetching in backward."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3)))
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
gathers, foreach_all_gather = [], groups.foreach_all_gather


def noting(params, *args):
    gathers.append(params[0]._param_fqn.split(".")[0])
    return foreach_all_gather(params, *args)


def backward_gathers():
    loss = model(torch.ones(1, 4)).sum()
    gathers.clear()
    loss.backward()
    return json.dumps(gathers)


groups.foreach_all_gather = noting
clean = backward_gathers()
torch.no_grad()(model)(torch.ones(1, 4))
after = backward_gathers()
if dist.get_rank() == 0:
    print("clean =", clean, "\nafter_an_evaluation =", after)
