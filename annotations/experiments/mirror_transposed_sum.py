"""Summing a transposed tensor over two ranks: Megatron's `_reduce`, and the mini's."""

import json

import torch
import torch.distributed as dist
from megatron.core.tensor_parallel import mappings as megatron

from mini_impls import tensor_parallel as mini

RANKS = 2
UPSTREAMS = ["megatron", "minis"]

dist.init_process_group("gloo")
rank = dist.get_rank()
for side, reduce in {"mini": mini._reduce, "megatron": megatron._reduce}.items():
    own = torch.full((2, 3), 1.0 + rank)  # 1 here and 2 there: a sum of 3
    total = reduce(own.t(), dist.group.WORLD)[0, 0].item()
    is_kept = own[0, 0].item() == 1.0 + rank
    print(f"{side} = {json.dumps([total, is_kept])}" * (rank == 0))
dist.destroy_process_group()
