"""All-reduces of changes over several mesh dimensions of eight silent ranks."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("a", "b", "c"))
S0, R, P = Shard(0), Replicate(), Partial()


def sent(before, after, rows=8):
    tensor = DTensor.from_local(torch.ones(rows, 1), mesh, before, run_check=False)
    with CommDebugMode() as comm:
        tensor.redistribute(mesh, after)
    counts = comm.get_comm_counts()
    return json.dumps({str(op).split(".")[-1]: n for op, n in counts.items()})


print("named_only =", sent([P, P, R], [R, R, R]))
mesh["a", "b"]._flatten()
mesh["a", "c"]._flatten()
mesh["a", "b", "c"]._flatten()
print("flattened =", sent([P, P, R], [R, R, R]))
print("with_a_scatter_between =", sent([P, P, P], [R, S0, R]))
print("not_neighbours =", sent([P, R, P], [R, R, R]))
print("scattered =", sent([P, P, R], [S0, S0, R]))
print("scattered_uneven =", sent([P, P, R], [S0, S0, R], rows=6))
