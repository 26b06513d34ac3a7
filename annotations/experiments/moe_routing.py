"""What Megatron's router makes of scores: weights, drops, a loss that rides along."""

import json

import torch
from megatron.core.transformer.moe import moe_utils

RANKS = 1
UPSTREAMS = ["megatron"]

logits = torch.tensor([[2.0, 1.0, 0.0], [2.0, 0.0, 1.0], [3.0, 0.0, -1.0]])
route = moe_utils.topk_routing_with_score_function
weights, chosen = route(logits, 2)
print("sums =", [round(x, 4) for x in weights.sum(1).tolist()])
before = route(logits, 2, use_pre_softmax=True)[0]
print("sums_of_softmax_before =", [round(x, 2) for x in before.sum(1).tolist()])
bias = torch.tensor([-1.0, 0.0, 0.3])
biased = route(logits[:1], 2, score_function="sigmoid", expert_bias=bias)[0]
scores = logits[0].sigmoid()
unbiased = scores[1] / (scores[1] + scores[2])
print("bias_in_weights =", json.dumps(bool((biased[0, 1] - unbiased).abs() > 1e-6)))

dropped, kept = moe_utils.apply_router_token_dropping(weights, chosen, 2, 1.0)
print("copies_by_expert =", [mask.sum(0).tolist() for mask in (chosen, kept)])
print("sums_after_dropping =", [round(x, 2) for x in dropped.sum(1).tolist()])

even, counts = torch.full((8, 4), 0.25), torch.full((4,), 4.0)
loss = moe_utils.switch_load_balancing_loss_func(even, counts, 8, 2, 4, 0.01)
print("loss_of_even_load =", round(loss.item(), 4))
w = torch.ones(1, requires_grad=True)
out = moe_utils.MoEAuxLossAutoScaler.apply(w * 3.0, (w**3).sum())
(out * 100).sum().backward()
print("gradient_of_both =", w.grad.item())

try:
    moe_utils.router_gating_linear(even, even, None, torch.float32)
except NameError as error:
    print("gating_without_transformer_engine =", [str(error)])
