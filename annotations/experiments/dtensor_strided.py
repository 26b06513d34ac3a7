"""Rows of each of four shards under plain and strided placements, and what is said."""

import json

import torch
from torch.distributed.tensor import placement_types as types
from torch.distributed.tensor.placement_types import Shard, _StridedShard

RANKS = 1

rows = torch.arange(8)
strided = _StridedShard(0, split_factor=2)


def cut(placement, tensor, parts):
    shards, _ = placement._split_tensor(tensor, parts, with_padding=False)
    return [shard.tolist() for shard in shards]


def nested(outer):
    """The rows of ranks (0, 0), (0, 1), (1, 0), (1, 1), cut by outer, then by Shard."""
    halves = cut(outer, rows, 2)
    return [part for half in halves for part in cut(Shard(0), torch.tensor(half), 2)]


print("plain =", json.dumps(nested(Shard(0))))
print("strided =", json.dumps(nested(strided)))
print("outer_half =", json.dumps(cut(strided, rows, 2)[0]))
print("is_shard =", json.dumps([Shard(0).is_shard(), strided.is_shard()]))
print("is_instance =", json.dumps(isinstance(strided, Shard)))
print("is_shard_like =", json.dumps(types._is_shard_like(strided)))
