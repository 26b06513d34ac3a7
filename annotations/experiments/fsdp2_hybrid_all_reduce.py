"""What one backward of FSDP2 sends on a 2 x 2 mesh (whose group sends nothing)."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
model = fully_shard(torch.nn.Linear(16, 16, bias=False), mesh=mesh)
sent = []
all_reduce, reduce_scatter = dist.all_reduce, dist.reduce_scatter_single


def noting_all_reduce(tensor, **kwargs):
    sent.append(["all_reduce", tensor.numel(), kwargs["group"].size()])
    return all_reduce(tensor, **kwargs)


def noting_reduce_scatter(**kwargs):
    sent.append(["reduce_scatter", kwargs["input"].numel(), kwargs["group"].size()])
    return reduce_scatter(**kwargs)


dist.all_reduce, dist.reduce_scatter_single = noting_all_reduce, noting_reduce_scatter
model(torch.ones(1, 16)).sum().backward()
print("sent =", json.dumps(sent))
sent.clear()
model.set_requires_all_reduce(False)
model(torch.ones(1, 16)).sum().backward()
kept = model._get_fsdp_state()._fsdp_param_group._partial_reduce_output
print("sent_without_all_reduce =", json.dumps(sent), "\nkept_elements =", kept.numel())
