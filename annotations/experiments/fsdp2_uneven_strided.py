"""Rows held, and rows that a placement speaks of, where tensor ranks' cuts differ."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1


def cut(rank):
    """Return seven rows as rank of 3 data-parallel by 2 tensor-parallel has them."""
    dist.init_process_group("fake", rank=rank, world_size=6, store=FakeStore())
    mesh = init_device_mesh("cpu", (3, 2), mesh_dim_names=("dp", "tp"))
    layer = torch.nn.Linear(2, 7, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(7.0)[:, None].expand(7, 2))
    # Nobody sends what the first rank has: each has it already.
    parallelize_module(layer, mesh["tp"], ColwiseParallel(), src_data_rank=None)
    return fully_shard(layer, mesh=mesh["dp"]).weight


def show(name, rows):
    print(name, "=", json.dumps(rows))


weight = cut(4)
show("held", weight.to_local()[:, 0].int().tolist())
where = weight.shape, weight.device_mesh, weight.placements
(size, _), (first, _) = compute_local_shape_and_global_offset(*where)
show("said", list(range(first, first + size)))
dist.destroy_process_group()
show("held_by_its_neighbour", cut(5).to_local()[:, 0].int().tolist())
dist.destroy_process_group()
