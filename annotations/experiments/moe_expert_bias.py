"""What a router counts for its bias: in bf16, behind a capacity, with a mask."""

from types import SimpleNamespace

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.moe import moe_utils, router

UPSTREAMS = ["megatron"]

torch.compiler.set_stance("force_eager")
dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
torch.cuda.current_device, one = lambda: "cpu", dist.group.WORLD
groups = SimpleNamespace(tp=one, cp=one, tp_cp=one, tp_dp_cp=one)
given = {
    "num_layers": 1, "hidden_size": 4, "num_attention_heads": 1, "moe_router_topk": 1,
    "num_moe_experts": 4, "moe_router_score_function": "sigmoid",
    "moe_router_enable_expert_bias": True, "add_bias_linear": False,
}  # fmt: skip
config, fit = TransformerConfig(**given), {"moe_expert_capacity_factor": 1.0}
fit |= given | {"moe_pad_expert_input_to_capacity": True}


def count(layer, tokens, mask=None):  # all ask for expert 0
    layer.routing(torch.tensor([3.0, 2, 1, 0]).expand(tokens, 1, 4), mask)
    return layer.local_tokens_per_expert.tolist()


full = router.TopKRouter(config, groups)
print("in_fp32 =", [count(full, n)[0] for n in (256, 1)])
half = router.TopKRouter(config, groups).bfloat16()
print("in_bf16 =", [count(half, n)[0] for n in (256, 1)])
padded = router.TopKRouter(TransformerConfig(**fit), groups)
print("padded =", count(padded, 8))
load, bias = padded.local_tokens_per_expert, padded.expert_bias
print("bias_when_padded =", moe_utils.get_updated_expert_bias(load, bias, 0.1).tolist())
