"""How often the last expert that a token chooses has an equal behind it."""

import json
import warnings

import torch
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.moe import moe_utils

RANKS = 1
UPSTREAMS = ["megatron"]

TOKENS, EXPERTS, CHOSEN = 20000, 256, 8
torch.manual_seed(0)
normal = torch.randn(TOKENS, EXPERTS)


def tied(dtype, score, deviation=1.0):
    """Return per cent of the tokens whose eighth and ninth scores are one number."""
    logits = (deviation * normal).to(dtype)
    scores = logits.float().sigmoid().to(dtype) if score == "sigmoid" else logits
    best = scores.topk(CHOSEN + 1, dim=1).values
    return round(100 * (best[:, -1] == best[:, -2]).double().mean().item())


dtypes = {str(dtype)[6:]: dtype for dtype in (torch.bfloat16, torch.float32)}
# From 1 to 2: a factor of two more moves the exponent of each logit, and no tie.
spread = [1 + tenth / 10 for tenth in range(11)]
found = {name: [tied(t, "softmax", d) for d in spread] for name, t in dtypes.items()}
print("softmax =", json.dumps({name: [min(x), max(x)] for name, x in found.items()}))
print("sigmoid =", json.dumps({name: tied(t, "sigmoid") for name, t in dtypes.items()}))
sizes = {"num_layers": 1, "hidden_size": 8, "num_attention_heads": 1}
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for experts in 31, 32:
        TransformerConfig(**sizes, num_moe_experts=experts)
print("warnings =", sum("without fp32 routing" in str(w.message) for w in said))
route = moe_utils.topk_routing_with_score_function
scaled = route(normal[:8], CHOSEN, scaling_factor=2.5)[0].sum(1)
print("scaled_without_pre_softmax =", round(scaled.mean().item(), 4))
