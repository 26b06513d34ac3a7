"""Whose gradients Megatron averages where two ranks hold two slices of an expert."""

import json

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state
from megatron.core.tensor_parallel.layers import ColumnParallelLinear
from megatron.core.transformer import TransformerConfig

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
seen, torch.cuda.current_device = {}, lambda: "cpu"
for tp, ep, etp in (1, 1, 2), (1, 2, 1), (2, 1, 1):
    parallel_state.initialize_model_parallel(
        tp,
        expert_model_parallel_size=ep,
        expert_tensor_parallel_size=etp,
        create_gloo_process_groups=False,
    )
    config = TransformerConfig(
        tensor_model_parallel_size=tp, expert_model_parallel_size=ep,
        expert_tensor_parallel_size=etp, num_layers=1, hidden_size=2, num_moe_experts=2,
        num_attention_heads=2, add_bias_linear=False, use_cpu_initialization=True,
    )  # fmt: skip
    group = parallel_state.get_expert_tensor_parallel_group()
    options = {"bias": False, "is_expert": True, "tp_group": group}
    options |= {"config": config, "init_method": torch.nn.init.ones_}
    layer = ColumnParallelLinear(2, 2, **options)
    settings = distributed.DistributedDataParallelConfig()
    ddp = distributed.DistributedDataParallel(config, settings, layer)
    layer.weight.main_grad.fill_(1.0 + dist.get_rank())  # of this rank's rows alone
    ddp.finish_grad_sync()
    seen[f"ep{ep}_etp{etp}"] = gradients = [None, None]
    dist.all_gather_object(gradients, layer.weight.main_grad.unique().item())
    parallel_state.destroy_model_parallel()
print("copies_of_a_whole_expert =", seen.pop("ep1_etp1"))
print("gradients =", json.dumps(seen))
