"""What the flex dispatcher makes of one token's choice, two ranks per expert."""

import json
from types import SimpleNamespace as Made

import torch
from megatron.core.transformer.moe.token_dispatcher import MoEFlexTokenDispatcher
from megatron.core.transformer.moe.token_dispatcher import _DeepepManager as DeepEP

RANKS = 1
UPSTREAMS = ["megatron"]

layout = Made(tp_size=2, ep_size=2, num_local_experts=2)
chosen = torch.tensor([[False, False, True, False]])
weights = torch.tensor([[0.0, 0.0, 0.75, 0.0]])
routed, probs = MoEFlexTokenDispatcher._initialize_metadata(layout, chosen, weights)
print("ranks =", json.dumps(routed[0].any(dim=1).tolist()))
sent = Made(num_experts=8, router_topk=2, capacity_factor=None)
DeepEP.setup_metadata(sent, routed, probs)
print("experts =", sorted(sent.token_indices[0].tolist()))
wanted = sent.token_indices
DeepEP.setup_metadata(sent, routed, probs * 0)
others = sorted(sent.token_indices[0].tolist()) != sorted(wanted[0].tolist())
print("of_weight_zero =", json.dumps("others" if others else "the same"))
sent.capacity_factor = 1.0
DeepEP.setup_metadata(sent, routed, probs * 0)
print("with_a_capacity =", sent.token_indices[0].tolist())
