"""Gathers of one inner group of FSDP2 in a step, and what it holds after forward."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
mesh = init_device_mesh("cpu", (4,))
all_gather = dist.all_gather_single


def show(name, value):
    model = torch.nn.Sequential(torch.nn.Linear(16, 16, bias=False))
    fully_shard(model[0], mesh=mesh, reshard_after_forward=value)
    fully_shard(model, mesh=mesh)
    group = model[0]._get_fsdp_state()._fsdp_param_group
    param, over = group.fsdp_params[0], []

    def noting(*args, **kwargs):
        over.append(kwargs["group"].size())
        return all_gather(*args, **kwargs)

    dist.all_gather_single = noting
    loss = model(torch.ones(1, 16)).sum()
    held = param.all_gather_outputs[0].untyped_storage().size() // 4
    held += getattr(param, "_sharded_post_forward_param_data", torch.empty(0)).numel()
    loss.backward()
    print(name, "=", json.dumps({"gathers_over": over, "held_elements": held}))


show("true", True)
show("false", False)
show("one", 1)
show("two", 2)
