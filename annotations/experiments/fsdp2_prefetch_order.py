"""What an evaluation between two steps does to FSDP2's prefetching in backward."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh = init_device_mesh("cpu", (2,))
model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3)))
for layer in (*model, model):
    fully_shard(layer, mesh=mesh)
gathers, whole, foreach_all_gather = [], [], groups.foreach_all_gather


def noting(params, *args):
    gathers.append(params[0]._param_fqn[0])
    layers = [layer._get_fsdp_state()._fsdp_param_group for layer in model]
    whole.append(1 + sum(group.is_unsharded for group in layers))
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
print(f"clean = {clean}\nafter_an_evaluation = {after}\nmost_gathered = {max(whole)}")
