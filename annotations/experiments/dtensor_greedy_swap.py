"""Elements a rank holds when two mesh dimensions of 8 change what they cut."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor import _redistribute as redistribute
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=64, store=FakeStore())
mesh = init_device_mesh("cpu", (8, 8))
gather, held = Shard._to_replicate_tensor, []


def noted(*args, **kwargs):
    held.append((whole := gather(*args, **kwargs)).numel())
    return whole


Shard._to_replicate_tensor = noted


def change(name, before, after, dtype=torch.float32):
    """Print the elements before a change of 64 x 64, at each gather, and after."""
    place = {"0": Shard(0), "1": Shard(1), "R": Replicate()}
    old, new = ([place[c] for c in text] for text in (before, after))
    sides = [64 // 8 ** before.count(c) for c in "01"]
    held[:] = [sides[0] * sides[1]]
    given = DTensor.from_local(torch.zeros(*sides, dtype=dtype), mesh, old)
    held.append(given.redistribute(mesh, new).to_local().numel())
    print(name, "=", held)


change("outer_to_inner", "0R", "R1")
change("inner_to_outer", "R0", "1R")
with redistribute.use_min_cost_redistribution_plan():
    change("searched", "R0", "1R", torch.float64)
