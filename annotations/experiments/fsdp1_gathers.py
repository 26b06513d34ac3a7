"""Collectives of one step of FSDP1 and units gathered at once, of four and a root."""

import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import BackwardPrefetch, ShardingStrategy
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1
dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
all_gather = dist.all_gather


def show(name, strategy, prefetch):
    options = {"backward_prefetch": prefetch, "device_id": torch.device("cpu")}
    units = [FSDP(torch.nn.Linear(4, 4), None, strategy, **options) for _ in range(4)]
    root = torch.nn.Sequential(*units, torch.nn.Linear(4, 4))
    model, gathers, reductions = FSDP(root, None, strategy, **options), [], []
    flats = [unit._flat_param for unit in (*units, model)]

    def gathered():
        return sum(f._full_param_padded.untyped_storage().size() > 0 for f in flats)

    dist.all_gather = lambda *a, **k: gathers.append(gathered()) or all_gather(*a, **k)
    dist.reduce_scatter_single = lambda *a, **k: reductions.append(gathered())
    loss = model(torch.ones(1, 4)).sum()
    before, kept = len(gathers), gathered()
    loss.backward()
    found = {"gathers": len(gathers), "reductions": len(reductions)}
    found |= {"after_forward": kept, "most_later": max([kept, *gathers[before:]])}
    print(name, "=", json.dumps(found))
    return reductions


show("full_pre", ShardingStrategy.FULL_SHARD, BackwardPrefetch.BACKWARD_PRE)
show("full_post", ShardingStrategy.FULL_SHARD, BackwardPrefetch.BACKWARD_POST)
kept = show("grad_op", ShardingStrategy.SHARD_GRAD_OP, BackwardPrefetch.BACKWARD_PRE)
print("grad_op_at_reductions =", kept)
