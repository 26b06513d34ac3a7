"""What autograd saved of a weight while FSDP2 frees it, gathers it again and copies."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh = init_device_mesh("cpu", (2,))
model = torch.nn.Sequential(*(torch.nn.Linear(4, 4, bias=False) for _ in range(2)))
for layer in model:
    fully_shard(layer, mesh=mesh, reshard_after_forward=True)
saved = []


def keep(tensor):
    saved.append(tensor)
    return tensor


with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
    output = model(torch.ones(1, 4, requires_grad=True))
weights = [t for t in saved if t.numel() == 16]
storage = weights[0].untyped_storage()
versions = [weights[0]._version]
print("bytes_after_forward =", storage.size())
group = model[0]._get_fsdp_state()._fsdp_param_group
group.unshard()
group.wait_for_unshard()
versions.append(weights[0]._version)
again = group.fsdp_params[0].unsharded_param.untyped_storage()
print("bytes_once_gathered =", storage.size())
print("same_storage =", json.dumps(storage._cdata == again._cdata))
print("versions =", json.dumps(versions))
