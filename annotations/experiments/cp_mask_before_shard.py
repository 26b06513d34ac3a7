"""Which blocks `_create_cp_block_mask` lets meet before a cut in order, and after."""

import json
from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental._context_parallel import _attention as cp
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh = init_device_mesh("cpu", (2,))
# What makes the mask runs as it is: nothing here is worth a compiler.
plain = {**vars(torch), "compile": lambda run, **options: run}
cp.torch = SimpleNamespace(**plain)


def causal(batch, head, query, key):
    """Return whether a query sees a key."""
    return query >= key


def blocks():
    """Return which of the four blocks of keys rank 0's two blocks of queries meet."""
    mask = cp._create_cp_block_mask(causal, 1, 1, 512, 512, mesh)
    return (mask.to_dense()[0, 0] > 0).int().tolist()


before = blocks()
part = cp._context_parallel_shard(mesh, [torch.arange(512)], [0])[0]
print("before =", json.dumps(before))
print("after =", json.dumps(blocks()))
print("tokens_of_rank_0 =", json.dumps([int(part[0]), int(part[-1])]))
