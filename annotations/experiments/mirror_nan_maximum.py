"""Whether a maximum over the ranks keeps a NaN that one rank has."""

import json
import math

import torch
import torch.distributed as dist

from mini_impls.fsdp_state import clip_grad_norm_

RANKS = 2
UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
rank = dist.get_rank()
lost = []
for guilty in range(2):
    number = torch.tensor(math.nan if rank == guilty else 1.0)
    dist.all_reduce(number, op=dist.ReduceOp.MAX)
    lost.append(not number.isnan().item())
shard = torch.nn.Parameter(torch.ones(1))
shard.grad = torch.tensor([math.nan if rank == 1 else 1.0])
norm = clip_grad_norm_([shard], 1.0, dist.group.WORLD, norm_type=math.inf)
if rank == 0:
    print("gloo_loses_it =", json.dumps(any(lost)))
    print("mini_keeps_it =", json.dumps(norm.isnan().item()))
