"""Mesh dimensions in the order in which DTensor undoes and makes a nested cut."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._redistribute import _gen_transform_infos
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
square = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
S0, R, P = Shard(0), Replicate(), Partial()


def show(name, *placements):
    tensor, size = torch.ones(2, 2), {"shape": (4, 4), "stride": (4, 1)}
    specs = [
        DTensor.from_local(tensor, square, each, run_check=False, **size)._spec
        for each in placements
    ]
    print(name, "=", [step.mesh_dim for step in _gen_transform_infos(*specs)])


show("undone", [S0, S0], [R, R])
show("made", [P, P], [S0, S0])
show("inner_kept", [S0, S0], [R, S0])
