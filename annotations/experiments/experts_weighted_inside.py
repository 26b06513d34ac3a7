"""What weights of tokens give inside the activation, and behind the second product."""

import json
from types import SimpleNamespace as Made

import torch
from megatron.core.transformer.moe.experts import TEGroupedMLP

RANKS = 1
UPSTREAMS = ["megatron"]

torch.manual_seed(0)
inner, weight = torch.randn(4, 8), torch.randn(3, 8)
probs = torch.rand(4, 1)
inside = (torch.relu(inner) * probs) @ weight.T
behind = (torch.relu(inner) @ weight.T) * probs
print("alike =", json.dumps(torch.allclose(inside, behind, atol=1e-6)))
bias = [torch.full((3,), 2.0), torch.full((3,), 4.0)]
given = torch.zeros(4, 3)
half = torch.full((4, 1), 0.5)
out = TEGroupedMLP._apply_bias(given, bias, [1, 3], half)
print("bias =", out[:, 0].tolist())
config = Made(
    activation_func=torch.relu, gated_linear_unit=False, bias_activation_fusion=False,
    use_te_activation_func=False, use_fused_weighted_squared_relu=False, fp8=None,
    fp4=None, moe_apply_probs_on_input=False,
)  # fmt: skip
seen = []
layer = Made(
    config=config, activation_func=torch.relu, activation_recompute=False,
    offload_expert_fc1=False, offload_moe_act=False, linear_fc1=lambda x, n: (x, None),
    linear_fc2=lambda x, n: (seen.append(x), (x, None))[1],
    _apply_bias=TEGroupedMLP._apply_bias,
)  # fmt: skip
TEGroupedMLP.forward(
    layer, torch.ones(2, 4), torch.tensor([1, 1]), torch.tensor([0.25, 0.5])
)
print("fc2_is_given =", seen[0][:, 0].tolist())
