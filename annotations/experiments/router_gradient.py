"""Which logits a loss on Megatron's routing weights moves, softmax behind or before."""

import torch
from megatron.core.transformer.moe import moe_utils

RANKS = 1
UPSTREAMS = ["megatron"]

for name, before in ("behind", False), ("before", True):
    logits = torch.tensor([[2.0, 1.0, 0.0]], requires_grad=True)
    route = moe_utils.topk_routing_with_score_function
    weights, _ = route(logits, 2, use_pre_softmax=before)
    (weights * torch.tensor([[1.0, 3.0, 5.0]])).sum().backward()
    moved = logits.grad[0]
    print(f"{name} =", [round(x, 2) for x in moved.tolist()])
    print(f"sum_{name} =", abs(round(moved[:2].sum().item(), 4)))
