"""The factors by which FSDP2 divides around a sum, by dtype and ranks."""

import json
from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp._fully_shard import _fsdp_collectives as collectives

RANKS = 1


def factors(ranks, dtype):
    """Return the division before the sum and after it, and the operation between."""
    group = SimpleNamespace(size=lambda: ranks)
    found = collectives._get_gradient_divide_factors(group, None, dtype)
    return [*found[:2], found[2].name]


def by_ranks(*counts):
    return json.dumps({ranks: factors(ranks, torch.float16)[:2] for ranks in counts})


print("equal =", by_ranks(4, 16, 64))
print("two_to_one =", by_ranks(2, 8, 32))
print("other_counts =", by_ranks(3, 6, 7, 12))
print("bf16 =", json.dumps(factors(8, torch.bfloat16)))
print("fp32 =", json.dumps(factors(8, torch.float32)))
print("fp16_max =", torch.finfo(torch.float16).max)

dist.init_process_group("gloo")
policy = MixedPrecisionPolicy(reduce_dtype=torch.float16)
layer = fully_shard(torch.nn.Linear(2, 1, bias=False), mp_policy=policy)
layer.set_gradient_divide_factor(4.0)
layer(torch.full((1, 2), 16.0)).sum().backward()
print("one_rank_divisor_4 =", 16.0 / layer.weight.grad.to_local()[0, 0].item())
