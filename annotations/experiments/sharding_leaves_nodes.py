"""What leaves a node of four, per rank of it, as rings of very many ranks send it."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1
dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
left, node = {}, range(4)


def note(name, argument, rounds):
    call = getattr(dist, name)

    def noting(*args, **kwargs):
        whole = args[0] if args else kwargs[argument]
        ring = dist.get_process_group_ranks(kwargs["group"])
        ends = zip(ring, ring[1:] + ring[:1], strict=True)
        hops = sum(a in node and b not in node for a, b in ends)
        share = rounds * hops / sum(rank in node for rank in ring)
        left[name] = left.get(name, 0) + share * whole.numel() / 1024
        return call(*args, **kwargs)

    setattr(dist, name, noting)


note("all_gather_single", "output_tensor", 1)
note("reduce_scatter_single", "input", 1)
note("all_reduce", "tensor", 2)
for name, sizes in (("full", (8,)), ("hybrid", (2, 4))):
    mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("of", "in")[-len(sizes) :])
    model = torch.nn.Sequential(*[torch.nn.Linear(16, 16, False) for _ in range(4)])
    _ = [fully_shard(m, mesh=mesh, reshard_after_forward=True) for m in (*model, model)]
    left.clear()
    model(torch.ones(1, 16)).sum().backward()
    print(name, "=", json.dumps(left))
