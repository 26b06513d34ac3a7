"""Communication groups that fully_shard makes, and the names it leaves."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1
dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
mesh = init_device_mesh("cpu", (4,))


def layers():
    return torch.nn.Sequential(*(torch.nn.Linear(4, 4, bias=False) for _ in range(3)))


def parameters_per_group(model):
    kept = (m._get_fsdp_state() for m in model.modules() if isinstance(m, FSDPModule))
    states = dict.fromkeys(kept)
    return [len(g.fsdp_params) for state in states for g in state._fsdp_param_groups]


pair = layers()
fully_shard([pair[0], pair[1]], mesh=mesh)
print("two_modules =", parameters_per_group(pair))
root_only, inner_first = fully_shard(layers(), mesh=mesh), layers()
names = [*dict(inner_first.named_parameters())]
for module in (*inner_first, inner_first):
    fully_shard(module, mesh=mesh)
print("root_only =", parameters_per_group(root_only))
try:
    fully_shard(root_only[0], mesh=mesh)
except TypeError as error:
    print("root_first =", json.dumps(type(error).__name__))
print("inner_first =", parameters_per_group(inner_first))
print("class =", json.dumps(type(inner_first[0]).__name__))
print("same_names =", json.dumps(names == [*dict(inner_first.named_parameters())]))
