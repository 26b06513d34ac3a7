"""What a step sends per rank, in models, as rings of very many ranks would send it."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
sent = {}


def note(name, rounds):
    call = getattr(dist, name)

    def noting(*args, **kwargs):
        whole = args[0] if args else kwargs["input"]
        sent[name] = sent.get(name, 0) + rounds * whole.numel() / 1024
        return call(*args, **kwargs)

    setattr(dist, name, noting)


for name in ("all_gather_single", "reduce_scatter_single"):
    note(name, 1)
note("all_reduce", 2)
for name, sizes, free in (("kept", (8,), 0), ("full", (8,), 1), ("hybrid", (2, 4), 1)):
    mesh = init_device_mesh(
        "cpu", sizes, mesh_dim_names=("replicate", "shard")[-len(sizes) :]
    )
    model = torch.nn.Sequential(*[torch.nn.Linear(16, 16, False) for _ in range(4)])
    for module in (*model, model):
        fully_shard(module, mesh=mesh, reshard_after_forward=bool(free))
    sent.clear()
    model(torch.ones(1, 16)).sum().backward()
    print(name, "=", json.dumps({**sent, "total": sum(sent.values())}))
