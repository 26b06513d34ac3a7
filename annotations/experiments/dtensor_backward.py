"""Collectives of the backward of each change of placement, on four silent ranks."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
mesh = init_device_mesh("cpu", (4,))
S0, S1, R, P = Shard(0), Shard(1), Replicate(), Partial()


def show(name, before, after, gradient):
    local = torch.ones(4, 4, requires_grad=True)
    tensor = DTensor.from_local(local, mesh, [before], run_check=False)
    tensor.retain_grad()
    output = tensor.redistribute(mesh, [after])
    ones = torch.ones_like(output.to_local())
    owed = DTensor.from_local(ones, mesh, [gradient], run_check=False)
    with CommDebugMode() as comm:
        output.backward(owed)
    counts = comm.get_comm_counts()
    sent = {str(op).split(".")[-1]: n for op, n in counts.items()}
    print(name, "=", json.dumps([str(tensor.grad.placements[0]), sent]))


show("partial_to_replicate", P, R, R)
show("partial_to_shard", P, S0, S0)
show("shard_to_replicate", S0, R, R)
show("shard_to_replicate_owed_partial", S0, R, P)
try:
    show("mean_to_replicate_owed_sum", Partial("avg"), R, P)
except AssertionError as error:
    print("mean_to_replicate_owed_sum =", json.dumps(type(error).__name__))
