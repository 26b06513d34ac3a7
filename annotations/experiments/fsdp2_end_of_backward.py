"""What FSDP2's final callback runs, for the last backward of a step and before."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh = init_device_mesh("cpu", (2,))
model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3)))
for layer in (*model, model):
    fully_shard(layer, mesh=mesh)
calls = []


def noting(method):
    def call(self, *args):
        calls.append(f"{method.__name__} {self._module_fqn}".strip())
        return method(self, *args)

    return call


for name in ("post_backward", "finalize_backward"):
    setattr(FSDPParamGroup, name, noting(getattr(FSDPParamGroup, name)))
for name, forward in {
    "last": model,
    "two_unfed": lambda x: model[0](x) + model[1](x),
    "not_last": model,
}.items():
    model.set_is_last_backward(name != "not_last")
    calls.clear()
    forward(torch.ones(1, 4)).sum().backward()
    print(name, "=", json.dumps(calls))
