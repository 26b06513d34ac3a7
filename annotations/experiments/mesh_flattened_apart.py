"""What DTensor makes of a sum over a flattened mesh and the mesh it came from."""

import json
import warnings

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import zeros
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp", "cp", "tp"))
flat = mesh["dp", "cp"]._flatten()
try:
    zeros(8, device_mesh=flat) + zeros(8, device_mesh=mesh["dp", "cp"])
except RuntimeError as error:
    print("sum =", json.dumps(str(error)[:59]))
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    print("sliced =", json.dumps(mesh["dp_cp", "tp"].mesh.tolist()))
print("warns =", json.dumps("deprecated" in str(said[0].message)))
joined = [DeviceMesh._concatenate([flat, mesh["tp"]]).mesh_dim_names]
mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp", "tp", "cp"))
flat = mesh["dp", "cp"]._flatten()
try:
    mesh["dp_cp", "tp"]
except KeyError as error:
    print("between =", json.dumps(type(error).__name__))
joined.append(DeviceMesh._concatenate([flat, mesh["tp"]]).mesh_dim_names)
mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("tp", "dp", "cp"))
mesh["dp", "cp"]._flatten()
print("before =", json.dumps(mesh["tp", "dp_cp"].mesh.tolist()))
print("joined =", json.dumps(joined))
