"""The factors by which FSDP2 divides around a sum, by dtype and ranks."""

import json
from types import SimpleNamespace

import torch
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
