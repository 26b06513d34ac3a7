"""What layout DTensor picks for a product, by sizes, on eight silent ranks."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
mesh = init_device_mesh("cpu", (8,))
S0, S1, R = Shard(0), Shard(1), Replicate()


def given(rows, columns, placement):
    local = [rows, columns]
    if placement != R:
        local[placement.dim] //= 8
    return DTensor.from_local(torch.empty(local), mesh, [placement], run_check=False)


def product(name, rows, inner, columns, left, right):
    left, right = given(rows, inner, left), given(inner, columns, right)
    with CommDebugMode() as comm:
        result = left @ right
    sent = {str(op).split(".")[-1]: n for op, n in comm.get_comm_counts().items()}
    print(name, "=", json.dumps([str(result.placements[0]), sent]))


product("replicated", 64, 64, 64, R, R)
product("aligned", 64, 64, 64, S1, S0)
product("many_rows", 16384, 64, 64, S0, S0)
product("few_rows", 64, 4096, 4096, S0, S0)
product("few_rows_of_columns", 64, 4096, 4096, S0, S1)
product("many_rows_of_columns", 16384, 64, 64, S0, S1)
