"""In which order DTensor's greedy plan takes the dimensions of a mesh."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._redistribute import _gen_transform_infos_non_cached
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
mesh = init_device_mesh("cpu", (2, 2, 2))
meta = TensorMeta(torch.Size((8, 8, 8)), (64, 8, 1), torch.float32)


def order(before, after):
    """Return the dimensions of the mesh in the order of the plan's steps."""
    places = [
        tuple(Shard(int(c)) if c.isdigit() else Replicate() for c in text)
        for text in (before, after)
    ]
    specs = [DTensorSpec(mesh, each, meta) for each in places]
    return [step.mesh_dim for step in _gen_transform_infos_non_cached(*specs)]


print("undone =", order("000", "RRR"))
print("made =", order("2RR", "200"))
print("of_three_dimensions =", order("0RR", "012"))
