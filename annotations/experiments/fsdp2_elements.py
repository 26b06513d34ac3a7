"""Elements that a step of FSDP2 gathers and scatters, per element of the model."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
mesh = init_device_mesh("cpu", (4,))


class Counted(TorchDispatchMode):
    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name
        if name.startswith("c10d::") and (
            "allgather" in name or "reduce_scatter" in name
        ):
            self.elements += max(arg.numel() for arg in args[:2])
        return func(*args, **(kwargs or {}))


def times(reshard):
    model = torch.nn.Sequential(torch.nn.Linear(16, 16, bias=False))
    fully_shard(model[0], mesh=mesh, reshard_after_forward=reshard)
    fully_shard(model, mesh=mesh)
    with Counted() as counted:
        model(torch.ones(1, 16)).sum().backward()
    return counted.elements / 256


print(f"sharded = {times(True)}\nkept = {times(False)}")
