"""Which of FSDP2's groups learn from their inputs that their backward has ended."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh = init_device_mesh("cpu", (2,))
model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3)))
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
told, plain = [], groups.RegisterPostBackwardFunction.backward


def noting(ctx, *grads):
    told.append(ctx.param_group._module_fqn)
    return plain(ctx, *grads)


groups.RegisterPostBackwardFunction.backward = staticmethod(noting)
for name, needs in (("plain_input", False), ("input_with_gradient", True)):
    told.clear()
    model(torch.ones(1, 4, requires_grad=needs)).sum().backward()
    print(name, "=", json.dumps(told))
