"""The balancing loss of Megatron's router where a mask is True for every token."""

import json

import torch
import torch.distributed as dist
from megatron.core.transformer.moe import moe_utils

UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
logits = torch.tensor([[3.0, 0.0], [0.0, 3.0]])
for name, mask in ("one_pad", [True, False]), ("all_true", [True, True]):
    routed, scores = moe_utils.compute_routing_scores_for_aux_loss(
        logits, 1, "softmax", padding_mask=torch.tensor(mask)
    )
    counts, _, total = moe_utils.get_tokens_per_expert_and_token_count(
        routed, dist.group.WORLD, 1, with_padding_mask=True
    )
    loss = moe_utils.switch_load_balancing_loss_func(scores, counts, total, 1, 2, 1.0)
    print(f"{name} =", json.dumps("nan" if loss.isnan() else "finite"))
dist.destroy_process_group()
