"""What each value of reshard_after_forward becomes on a mesh of four ranks."""

import json

import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo
from torch.distributed.fsdp._fully_shard._fsdp_init import _get_post_forward_mesh_info
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
info = FSDPMeshInfo(init_device_mesh("cpu", (4,)), shard_mesh_dim=0)


def becomes(value):
    """The size of the groups that hold the parameters between forward and backward."""
    try:
        result = _get_post_forward_mesh_info(value, info)
    except ValueError:
        return "ValueError"
    if result is None:
        return "kept"
    return "the whole mesh" if result is info else result.shard_mesh_size


for name, value in {
    "true": True,
    "false": False,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
}.items():
    print(name, "=", json.dumps(becomes(value)))
