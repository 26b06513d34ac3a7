"""Which groups flattening asks for where one of the dimensions has a single rank."""

import json

import torch.distributed as dist
from torch.distributed import device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1
made, new_group = [], device_mesh.new_group


def counted(*args, **kwargs):
    """Make a group, and note its ranks and its backend."""
    made.append([kwargs["ranks"], kwargs["backend"]])
    return new_group(*args, **kwargs)


def asked_for(work):
    """Return the groups that a piece of work makes."""
    made.clear()
    work()
    return [*made]


device_mesh.new_group = counted
dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
names = ("dp", "cp", "tp")
chosen = {"dp": "fake", "cp": "fake"}
mesh = device_mesh.init_device_mesh(
    "cpu", (4, 1, 2), mesh_dim_names=names, backend_override=chosen
)
of_dp = made[:2]
flat = asked_for(lambda: mesh["dp", "cp"]._flatten())
again = asked_for(lambda: mesh["dp", "cp"]._flatten(backend_override="fake"))
groups = [mesh[name].get_group() for name in ("dp", "dp_cp")]
print("of_dp =", json.dumps(of_dp), "\nflat =", json.dumps(flat))
print("again =", json.dumps(again))
print("one_group =", json.dumps(groups[0] is groups[1]))
