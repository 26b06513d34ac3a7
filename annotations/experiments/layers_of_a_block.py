"""Which dimension of each weight of Megatron's local GPT layer is cut, on two ranks."""

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.tensor_parallel.layers import VocabParallelEmbedding
from megatron.core.transformer import TransformerConfig

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(2, create_gloo_process_groups=False)
config = TransformerConfig(
    num_layers=1,
    hidden_size=8,
    num_attention_heads=2,
    tensor_model_parallel_size=2,
    use_cpu_initialization=True,
)
layer = get_gpt_layer_local_spec().submodules
attention, mlp = layer.self_attention.submodules, layer.mlp.submodules
given = {"config": config, "init_method": torch.nn.init.ones_}
more = {**given, "bias": False, "skip_bias_add": True}
parts = {
    "qkv": attention.linear_qkv(8, 24, gather_output=False, **more),
    "attention_output": attention.linear_proj(8, 8, input_is_parallel=True, **more),
    "mlp_up": mlp.linear_fc1(8, 32, gather_output=False, **more),
    "mlp_down": mlp.linear_fc2(32, 8, input_is_parallel=True, **more),
    "norm": layer.input_layernorm(config=config, hidden_size=8, eps=1e-5),
    "embedding": VocabParallelEmbedding(16, 8, **given),
}
cuts = {-1: "replicated", 0: "output", 1: "input"}
if dist.get_rank() == 0:
    for name, part in parts.items():
        print(f'{name} = "{cuts[getattr(part.weight, "partition_dim", -1)]}"')
dist.destroy_process_group()
