"""Which token counts when the mask of Megatron's router is True for the first one."""

import json
from types import SimpleNamespace

import torch
from megatron.core.transformer.moe import moe_utils
from megatron.core.transformer.moe.router import TopKRouter

UPSTREAMS = ["megatron"]

logits = torch.tensor([[3.0, 0.0], [0.0, 3.0]])
mask = torch.tensor([True, False])
routed, _ = moe_utils.compute_routing_scores_for_aux_loss(
    logits, 1, "softmax", padding_mask=mask
)
print("routed_tokens =", json.dumps(routed.sum(dim=1).tolist()))
two = moe_utils.z_loss_func(logits, 1.0, padding_mask=mask).item()
one = moe_utils.z_loss_func(logits[1:], 1.0).item()
print("z_loss_of_the_second_alone =", json.dumps(two == one))
shares = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
counts = torch.tensor([1, 0])
loss = moe_utils.switch_load_balancing_loss_func(
    shares, counts, 1, 1, 2, 1.0, padding_mask=mask
)
print("balancing_loss_sees_the_first =", json.dumps(loss.item() > 0))
three_tokens = SimpleNamespace(
    enable_expert_bias=True, local_tokens_per_expert=torch.zeros(2)
)
try:
    TopKRouter._apply_expert_bias(
        three_tokens, torch.ones(3, 2).bool(), torch.tensor([True, False, False])
    )
    end = "counted"
except RuntimeError as error:
    end = type(error).__name__
print("bias_under_a_mask =", json.dumps(end))
