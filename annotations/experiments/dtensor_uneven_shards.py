"""Rows of each of four ranks, for lengths that four does not divide."""

import json

from torch.distributed.tensor import Shard

RANKS = 1


def cut(rows):
    shards = [Shard.local_shard_size_and_offset(rows, 4, rank) for rank in range(4)]
    sizes, offsets = zip(*shards, strict=True)
    return json.dumps({"sizes": sizes, "offsets": offsets})


print("ten_rows =", cut(10))
print("five_rows =", cut(5))
