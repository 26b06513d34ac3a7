"""Which heads of attention's output change with one head's query, key or value."""

import json

import torch

from mini_impls.model import GPTConfig, SelfAttention

RANKS = 1
UPSTREAMS = ["minis"]

torch.manual_seed(0)
config = GPTConfig(num_query_groups=4)
attention, width = SelfAttention(config), config.kv_channels
qkv = torch.randn(1, 5, 4 * 3 * width)
other = qkv.clone()
other[..., : 3 * width] += 1.0 + torch.rand(3 * width)  # of head 0
pair = [attention.core_attention(each) for each in (qkv, other)]
changed = [
    i for i in range(4) if not torch.equal(*(x.split(width, -1)[i] for x in pair))
]
print("changed_before_the_projection =", json.dumps(changed))
behind = [attention.linear_proj(each).split(width, -1) for each in pair]
changed = [
    i for i, (a, b) in enumerate(zip(*behind, strict=True)) if not torch.equal(a, b)
]
print("changed_behind_it =", json.dumps(changed))
