"""Experts that FSDP2 holds, stores and gathers of a stack over many ranks."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard
from torch.testing._internal.distributed.fake_pg import FakeStore


def show(name, experts, ranks, dim):
    found = {"held": [], "stored": []}
    for rank in (0, ranks - 1):
        dist.init_process_group("fake", rank=rank, world_size=ranks, store=FakeStore())
        module, mesh = torch.nn.Module(), init_device_mesh("cpu", (ranks,))
        module.w = torch.nn.Parameter(torch.zeros(experts, 256, 1))
        fully_shard(module, mesh=mesh, shard_placement_fn=lambda p: Shard(dim))
        param = module._get_fsdp_state()._fsdp_param_group.fsdp_params[0]
        found["held"].append(param.sharded_param.to_local().numel() / 256)
        found["stored"].append(param._sharded_param_data.numel() / 256)
        module.unshard()
        found["gathered"] = param.all_gather_outputs[0].numel() / 256
        dist.destroy_process_group()
    print(name, "=", json.dumps(found))


show("experts_128_of_256", 128, 256, 0)
show("second_dimension", 128, 256, 1)
show("experts_160_of_128", 160, 128, 0)
