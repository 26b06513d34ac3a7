"""Where halves of a gated layer stand in a checkpoint, built by a factory or not."""

import json

import torch
from megatron.core.dist_checkpointing import ShardedTensor
from megatron.core.dist_checkpointing.core import CheckpointingException
from megatron.core.transformer.mlp import apply_swiglu_sharded_factory

RANKS = 1
UPSTREAMS = ["megatron"]


def stored(shards):
    """Return the whole tensor that shards would leave in a checkpoint."""
    whole = torch.empty(shards[0].global_shape)
    for shard in shards:
        whole[shard.global_slice()] = shard.data
    return whole.flatten().tolist()


plain, built = [], []
for rank in range(2):
    gate, up = torch.full((1, 1), 1.0 + rank), torch.full((1, 1), 11.0 + rank)
    held = torch.cat([gate, up])
    shard = ShardedTensor.from_rank_offsets("fc1", held, (0, rank, 2))
    plain.append(shard)
    built += apply_swiglu_sharded_factory(shard, ()).build()
print("plain =", stored(plain))
print("factory =", stored(built))
try:
    flat = {"data": torch.ones(1), "flattened_range": slice(0, 1)}
    type(shard)(**{**vars(shard), **flat})
except CheckpointingException as error:
    print("flat =", json.dumps(str(error)))
