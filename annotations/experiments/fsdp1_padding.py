"""How FSDP1 cuts and pads a flat parameter, for 9 elements over 8 ranks."""

import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp._flat_param import FlatParamHandle
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

flat = torch.arange(1.0, 10.0)
cut = [FlatParamHandle._get_unpadded_shard(flat, rank, 8) for rank in range(8)]
stored = [FlatParamHandle._get_shard(flat, rank, 8)[0].numel() for rank in range(8)]
print("held =", json.dumps([shard.numel() for shard, _ in cut]))
print("padding =", json.dumps([pad for _, pad in cut]))
print("stored =", json.dumps(stored))
print("gathered =", sum(stored), "\nchunks =", len(flat.chunk(8)))
most = 0
for ranks in range(2, 17):
    for elements in range(1, 200):
        shard = FlatParamHandle._get_shard(torch.empty(elements), 0, ranks)[0]
        most = max(most, len(shard) * ranks - elements - (ranks - 1))
dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
options, second, flats = {"device_id": torch.device("cpu")}, set(), []
for width in range(1, 12):
    layer = torch.nn.Linear(3, width)
    unit = FullyShardedDataParallel(layer, use_orig_params=True, **options)
    flat = torch.empty(unit._handle.flat_param._unpadded_unsharded_size)
    flats.append(len(flat))
    second |= {FlatParamHandle._get_unpadded_shard(flat, r, 8)[1] for r in range(8)}
print("padding_with_use_orig_params =", sorted(second))
print("most_padding_above_ranks_minus_one =", most)
