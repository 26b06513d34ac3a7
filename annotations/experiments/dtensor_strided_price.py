"""What a product of two weights costs under plain and strided cuts, on 4 x 2 ranks."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor._collective_utils import redistribute_cost
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.placement_types import _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
mesh = init_device_mesh("cpu", (4, 2))
whole = (Replicate(), Replicate())


def weight(placements):
    """Return a matrix of 64 x 64 whose rows lie so."""
    local = torch.zeros(8 if placements != whole else 64, 64)
    laid = {"shape": torch.Size((64, 64)), "stride": (64, 1)}
    return DTensor.from_local(local, mesh, placements, run_check=False, **laid)


for name, outer in (("plain", Shard(0)), ("strided", _StridedShard(0, split_factor=2))):
    left, right = (weight((outer, Shard(0))) for _ in range(2))
    with CommDebugMode() as sent:
        product = left @ right
    placed = [str(placement) for placement in product.placements]
    print(name, "=", json.dumps([placed, sent.get_total_counts()]))
    price = redistribute_cost(left._spec, weight(whole)._spec)
    print(f"{name}_price =", json.dumps(str(round(price, 1))))
