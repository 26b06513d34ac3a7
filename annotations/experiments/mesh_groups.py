"""How many groups a device mesh makes, and what flattening two dimensions adds."""

import json

import torch.distributed as dist
from torch.distributed import device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1
made, new_group = [], device_mesh.new_group


def counted(*args, **kwargs):
    """Make a group, and count it."""
    made.append(kwargs["ranks"])
    return new_group(*args, **kwargs)


def calls(work):
    """Return what a piece of work returns, and how many groups it made."""
    before = len(made)
    return work(), len(made) - before


device_mesh.new_group = counted
dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
make = device_mesh.init_device_mesh
names = ("dp", "cp", "tp")
mesh, count = calls(lambda: make("cpu", (2, 2, 2), mesh_dim_names=names))
print("calls_of_three_dimensions =", count, "\ngroups_of_one =", count // 3)
print("calls_with_ones =", calls(lambda: make("cpu", (8, 1)))[1])
print("calls_of_the_world =", calls(lambda: make("cpu", (8,)))[1])
flat, count = calls(lambda: mesh["dp", "cp"]._flatten())
print("calls_of_flatten =", count, "\nflattened =", flat.mesh.tolist())
print("calls_of_flatten_again =", calls(lambda: mesh["dp", "cp"]._flatten())[1])
print("calls_of_flatten_world =", calls(lambda: mesh._flatten("all"))[1])
try:
    mesh["cp", "tp"]._flatten("dp_cp")
except ValueError as error:
    print("other_ranks =", json.dumps(type(error).__name__))
