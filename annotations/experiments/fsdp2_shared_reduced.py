"""Whose storage the gradients of one group of FSDP2 are, behind a backward."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
model = torch.nn.Sequential(*(torch.nn.Linear(8, 8, bias=False) for _ in range(4)))
fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
model(torch.ones(1, 8)).sum().backward()
grads = [parameter.grad.to_local() for parameter in model.parameters()]
storages = [grad.untyped_storage() for grad in grads]
print("elements =", json.dumps([grad.numel() for grad in grads]))
print("elements_of_the_storage =", json.dumps([s.nbytes() // 4 for s in storages]))
print("storages =", len({storage.data_ptr() for storage in storages}))
