"""Microseconds that DTensor reckons for changes of placement on sixteen ranks."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import _mesh_resources, init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor._collective_utils import redistribute_cost
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=16, store=FakeStore())
hosts = _mesh_resources.num_devices_per_host("cpu")
print("devices_of_a_host =", hosts)


def costs(sizes, before, after, rows=4096):
    mesh = init_device_mesh("cpu", sizes)
    meta = TensorMeta(torch.Size([rows, 4096]), (4096, 1), torch.bfloat16)
    specs = [DTensorSpec(mesh, tuple(p), tensor_meta=meta) for p in (before, after)]
    return round(redistribute_cost(*specs), 1)


S0, S1, R, P = Shard(0), Shard(1), Replicate(), Partial()
print("gather =", costs((16,), [S0], [R]))
print("reduce =", costs((16,), [P], [R]))
print("scatter =", costs((16,), [P], [S0]))
print("other_dimension =", costs((16,), [S0], [S1]))
print("gather_small =", costs((16,), [S0], [R], rows=16))
print("other_dimension_small =", costs((16,), [S0], [S1], rows=16))
print("from_replicate =", costs((16,), [R], [S0]))
print("refused =", json.dumps(str(costs((16,), [S0], [P]))))
