"""Collectives of DTensor's changes of placement on four ranks (that send nothing)."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
line = init_device_mesh("cpu", (4,))
square = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
S0, S1, R, P = Shard(0), Shard(1), Replicate(), Partial()


def show(name, mesh, before, after):
    tensor = DTensor.from_local(torch.ones(4, 4), mesh, before, run_check=False)
    with CommDebugMode() as comm:
        tensor.redistribute(mesh, after)
    counts = comm.get_comm_counts()
    sent = {str(op).split(".")[-1]: n for op, n in counts.items()}
    print(name, "=", json.dumps(sent))


show("partial_to_replicate", line, [P], [R])
show("shard_to_replicate", line, [S0], [R])
show("partial_to_shard", line, [P], [S0])
show("replicate_to_shard", line, [R], [S0])
show("shard_0_to_shard_1", line, [S0], [S1])
show("inner_kept", square, [S0, S0], [R, S0])
square["a", "b"]._flatten("ab")
show("inner_kept_flattened", square, [S0, S0], [R, S0])
