"""The factors by which FSDP2 divides around a sum, by dtype and ranks."""

import json
from types import SimpleNamespace

import torch
from torch.distributed.fsdp._fully_shard._fsdp_collectives import (
    _get_gradient_divide_factors,
)

RANKS = 1

for ranks in (2, 4, 6, 7, 8, 64):
    group = SimpleNamespace(size=lambda n=ranks: n)
    before, after, _, _ = _get_gradient_divide_factors(group, None, torch.float16)
    print(f"fp16_{ranks} =", json.dumps([before, after]))
for dtype in (torch.bfloat16, torch.float32):
    before, after, op, _ = _get_gradient_divide_factors(group, None, dtype)
    print(
        f"{str(dtype).removeprefix('torch.')} =", json.dumps([before, after, op.name])
    )
