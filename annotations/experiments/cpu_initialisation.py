"""A weight drawn on the CPU, for t = 1 and for both ranks of t = 2."""

import json

import torch
from megatron.core.tensor_parallel.layers import _initialize_affine_weight_cpu

RANKS = 1
UPSTREAMS = ["megatron"]
masters = []


def draw(weight):
    masters.append(tuple(torch.nn.init.normal_(weight).shape))


def shard(rank, degree):
    torch.manual_seed(1)
    weight = torch.nn.Parameter(torch.empty(8 // degree, 3))
    given = {"rank": rank, "world_size": degree}
    _initialize_affine_weight_cpu(weight, 8, 3, 8 // degree, 0, draw, **given)
    return weight.detach()


one = shard(0, 1)
two = torch.cat([shard(0, 2), shard(1, 2)])
print(f"joined_shards_are_the_weight_of_one_rank = {json.dumps(torch.equal(one, two))}")
print(f"drawn_on_each_rank = {json.dumps(masters)}")
