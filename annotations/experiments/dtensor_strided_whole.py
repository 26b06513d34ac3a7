"""What a strided shard's product with a whole matrix sends, and a view's price."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, zeros
from torch.distributed.tensor._collective_utils import redistribute_cost
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.placement_types import _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
mesh = init_device_mesh("cpu", (4, 2))
placements = _StridedShard(0, split_factor=2), Shard(0)
strided = DTensor.from_local(torch.zeros(8, 64), mesh, placements, run_check=False)
whole = zeros(64, 64, device_mesh=mesh, placements=(Replicate(), Replicate()))
with CommDebugMode() as sent:
    product = strided @ whole
kept = product.placements == placements
print("by_whole =", json.dumps([kept, sent.get_total_counts()]))
cut = zeros(4, 16, 64, device_mesh=mesh, placements=(Shard(1), Replicate()))
view = cut.view(64, 64)
print("is_strided =", json.dumps(isinstance(view.placements[0], _StridedShard)))
for name, each in (("made", strided), ("view", view)):
    price = redistribute_cost(each._spec, whole._spec)
    print(f"price_of_{name} =", json.dumps(str(price)))
