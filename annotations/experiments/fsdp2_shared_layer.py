"""What FSDP2 gathers ahead in backward where one layer runs twice in a row."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh, seen = init_device_mesh("cpu", (2,)), []


def noting(name, function, what):
    def noted(*args):
        seen.append(f"{name} {what(args[0])}")
        return function(*args)

    return noted


shared = torch.nn.Linear(4, 4)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), shared, shared)
for layer in (model[0], shared, model):
    fully_shard(layer, mesh=mesh)
loss = model(torch.ones(1, 4)).sum()
group = groups.FSDPParamGroup
asked = noting("ask for", group._prefetch_unshard, lambda of: of._module_fqn)
group._prefetch_unshard = staticmethod(asked)
for name, call in (("gather", "foreach_all_gather"), ("reduce", "foreach_reduce")):
    noted = noting(name, getattr(groups, call), lambda of: of[0]._param_fqn[0])
    setattr(groups, call, noted)
loss.backward()
print("backward =", json.dumps(seen))
