"""Which rank writes which shard of a checkpoint, where all or some hold it."""

import json

from megatron.core.dist_checkpointing.exchange_utils import distribute_shards_to_ranks

RANKS = 1
UPSTREAMS = ["megatron"]

everywhere = {name: [0, 1] for name in "abcd"}
sizes = dict(zip("abcd", (8, 5, 4, 3), strict=True))
print("by_size =", json.dumps(distribute_shards_to_ranks(everywhere, sizes, 2, set())))
held = {**everywhere, "a": [0], "d": [0]}
print("by_holders =", json.dumps(distribute_shards_to_ranks(held, sizes, 2, set())))
