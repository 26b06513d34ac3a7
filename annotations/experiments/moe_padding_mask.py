"""Which token counts when the mask of Megatron's router is True for the first one."""

import json

import torch
from megatron.core.transformer.moe import moe_utils

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
