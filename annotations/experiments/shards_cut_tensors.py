"""Where the ranks' ranges of one bucket fall in its tensors, for dp = 4."""

import json

from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer, Range

RANKS = 1
UPSTREAMS = ["megatron"]

# Three tensors of 96, 256 and 160 elements in a bucket of 512, one after the other.
index_map = {"a": (0, 96, 0), "b": (96, 352, 0), "c": (352, 512, 0)}
build = DistributedOptimizer._build_model_gbuf_param_range_map
ranks = [build(index_map, Range(128 * r, 128 * (r + 1)), 0) for r in range(4)]

pieces = [
    {name: [piece["param"].start, piece["param"].end] for name, piece in rank.items()}
    for rank in ranks
]
print(f"pieces = {json.dumps(pieces)}")
print(f"sizes = {json.dumps([sum(e - b for b, e in p.values()) for p in pieces])}")
print(f"ranges_of_a_piece = {json.dumps(len(ranks[0]['a']))}")
