"""Which tokens Megatron's router drops of a full expert; what padding comes to."""

import json

import torch
from megatron.core.transformer.moe.moe_utils import (
    apply_router_token_dropping,
    permute,
)

UPSTREAMS = ["megatron"]

chosen = torch.tensor([[True, False]] * 8)
weights = torch.linspace(0.1, 0.8, 8)[:, None] * chosen
alike = chosen * 0.5


def kept(given, policy, **options):
    drop = apply_router_token_dropping
    found = drop(given, chosen, 1, 1.0, drop_policy=policy, **options)[1]
    return [column.nonzero().flatten().tolist() for column in found.unbind(1)]


print("by_weight =", json.dumps(kept(weights, "probs")[0]))
print("by_position =", json.dumps(kept(alike, "position")[0]))
rows = kept(weights, "probs", pad_to_capacity=True)
print("rows_when_padded =", json.dumps([len(column) for column in rows]))

# What a capacity of 8 rows leaves of 4 tokens.
roomy = torch.ones(4, 2, dtype=torch.bool)
try:
    permute(torch.ones(4, 3), roomy, roomy * 0.5, num_out_tokens=16, drop_and_pad=True)
except RuntimeError as error:
    print("capacity_above_tokens =", json.dumps(str(error)))
