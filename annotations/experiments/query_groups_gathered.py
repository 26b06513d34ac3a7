"""What a rank gathers and keeps of the fused output of one group on two ranks."""

import json

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.transformer import TransformerConfig, attention

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(2, create_gloo_process_groups=False)
torch.cuda.current_device = lambda: "cpu"
sizes = {"hidden_size": 128, "num_attention_heads": 16, "num_query_groups": 1}
options = {"tensor_model_parallel_size": 2, "use_cpu_initialization": True}
config = TransformerConfig(num_layers=1, **sizes, **options)
spec = get_gpt_layer_local_spec().submodules.self_attention
mask = spec.params["attn_mask_type"]
layer = attention.SelfAttention(config, spec.submodules, 1, mask)
gather, widths = attention.all_gather_last_dim_from_tensor_parallel_region, []


def noted(mixed_qkv):
    whole = gather(mixed_qkv)
    widths.append([mixed_qkv.shape[-1], whole.shape[-1]])
    return whole


attention.all_gather_last_dim_from_tensor_parallel_region = noted
kept = layer.get_query_key_value_tensors(torch.ones(2, 1, 128))
if dist.get_rank() == 0:
    print("own_and_whole =", json.dumps(widths))
    print("kept =", sum(part.shape[2] * part.shape[3] for part in kept))
