"""What a caller of `_reduce` reads in its own tensor: 3 and 4 tokens on two ranks."""

import json

import torch
import torch.distributed as dist
from megatron.core.transformer.moe.moe_utils import (
    get_tokens_per_expert_and_token_count,
)

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
tokens = dist.get_rank() + 3
routing = torch.ones(tokens, 1, dtype=torch.bool)

_, local, total = get_tokens_per_expert_and_token_count(
    routing, dist.group.WORLD, topk=1, with_padding_mask=True
)
_, unmasked, _ = get_tokens_per_expert_and_token_count(
    routing, dist.group.WORLD, topk=1
)
both = [torch.empty(1), torch.empty(1)]
dist.all_gather(both, local.view(1))

if dist.get_rank() == 0:
    print(f"local_num_tokens = {json.dumps([count.item() for count in both])}")
    print(f"total_num_tokens = {json.dumps(total.item())}")
    print(f"without_padding_mask = {json.dumps(unmasked)}")
dist.destroy_process_group()
