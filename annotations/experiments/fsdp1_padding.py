"""How FSDP1 cuts and pads a flat parameter, for 9 elements over 8 ranks."""

import json

import torch
from torch.distributed.fsdp._flat_param import FlatParamHandle

RANKS = 1

flat = torch.arange(1.0, 10.0)
cut = [FlatParamHandle._get_unpadded_shard(flat, rank, 8) for rank in range(8)]
stored = [FlatParamHandle._get_shard(flat, rank, 8)[0].numel() for rank in range(8)]
print("held =", json.dumps([shard.numel() for shard, _ in cut]))
print("padding =", json.dumps([pad for _, pad in cut]))
print("stored =", json.dumps(stored))
print("gathered =", sum(stored))
print("chunks =", len(flat.chunk(8)))
most = 0
for ranks in range(2, 17):
    for elements in range(1, 200):
        shards = [
            FlatParamHandle._get_shard(torch.empty(elements), r, ranks)[0]
            for r in range(ranks)
        ]
        most = max(most, sum(map(len, shards)) - elements - (ranks - 1))
print("most_padding_above_ranks_minus_one =", most)
