"""Which way a router's counts move its biases, kept in fp32 and in bf16."""

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
asked = torch.arange(4).repeat_interleave(torch.tensor([13, 19, 11, 13]))
logits = 9.0 * torch.nn.functional.one_hot(asked, 4)[:, None]


def move(layer):
    for _ in range(150):  # microbatches of one step
        layer.routing(logits)
    counts, still = layer.local_tokens_per_expert, torch.zeros(4)
    return moe_utils.get_updated_expert_bias(counts, still, 1.0).tolist()


print("in_fp32 =", move(router.TopKRouter(TransformerConfig(**given), groups)))
half = router.TopKRouter(TransformerConfig(**given), groups).bfloat16()
print("in_bf16 =", move(half))
