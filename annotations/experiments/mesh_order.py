"""Which ranks a device mesh puts beside each other: the last name varies fastest."""

import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp", "tp", "pp"))
for name in ("dp", "tp", "pp"):
    print(name, "=", mesh[name].mesh.tolist())
