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


by_ranks = {ranks: factors(ranks, torch.float16)[:2] for ranks in (2, 4, 6, 7, 8, 64)}
print("fp16 =", json.dumps(by_ranks))
print("bf16 =", json.dumps(factors(8, torch.bfloat16)))
print("fp32 =", json.dumps(factors(8, torch.float32)))
print("fp16_max =", torch.finfo(torch.float16).max)
