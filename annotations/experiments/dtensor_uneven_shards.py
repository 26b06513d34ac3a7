"""Rows of each of four ranks, for lengths that four does not divide."""

import json

from torch.distributed.tensor import Shard

RANKS = 1

for rows in (10, 5):
    cut = [Shard.local_shard_size_and_offset(rows, 4, rank) for rank in range(4)]
    print(f"rows_of_{rows} =", json.dumps([size for size, _ in cut]))
    print(f"offsets_of_{rows} =", json.dumps([offset for _, offset in cut]))
