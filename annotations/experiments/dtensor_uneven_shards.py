"""Rows of each rank, for lengths that the ranks do not divide."""

import json

from torch.distributed.tensor import Shard

RANKS = 1


def cut(rows, ranks=4):
    shards = [
        Shard.local_shard_size_and_offset(rows, ranks, rank) for rank in range(ranks)
    ]
    sizes, offsets = zip(*shards, strict=True)
    return json.dumps({"sizes": sizes, "offsets": offsets})


print("ten_rows =", cut(10))
print("five_rows =", cut(5))
print("nine_rows =", cut(9, ranks=8))
