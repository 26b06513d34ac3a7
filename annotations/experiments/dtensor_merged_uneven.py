"""Five and eight rows, cut in two and in two, gathered after the mesh was flattened."""

import json

import torch
import torch.distributed as dist
from torch.distributed._local_tensor import LocalTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1  # the four are simulated in this process, values and all

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())


def gathered(mesh, rows):
    cut = distribute_tensor(torch.arange(rows), mesh, [Shard(0), Shard(0)])
    whole = cut.redistribute(mesh, [Replicate(), Replicate()]).to_local()
    held = [whole._local_tensors[rank].tolist() for rank in range(4)]
    assert held == [held[0]] * 4, held
    return json.dumps(held[0])


with LocalTensorMode(4):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    print("two_gathers =", gathered(mesh, 5))
    mesh["a", "b"]._flatten()
    print("merged =", gathered(mesh, 5))
    print("merged_even =", gathered(mesh, 8))
