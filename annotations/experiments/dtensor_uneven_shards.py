"""Rows of each rank, for lengths that the ranks do not divide."""

import json

from torch.distributed.tensor import Shard
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset

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
twice = [
    _compute_local_shape_and_global_offset(
        (10,), (2, 2), [outer, inner], [Shard(0)] * 2
    )
    for outer in range(2)
    for inner in range(2)
]
print("ten_rows_twice =", json.dumps([shape[0] for shape, _ in twice]))
