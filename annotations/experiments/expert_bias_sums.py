"""Gradients of two experts' second layers, behind the sums over tensor ranks."""

import json
from types import SimpleNamespace

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.distributed.finalize_model_grads import (
    _allreduce_non_tensor_model_parallel_grads as all_reduce,
)
from megatron.core.model_parallel_config import ModelParallelConfig
from megatron.core.tensor_parallel.layers import RowParallelLinear

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
experts = {"expert_model_parallel_size": 2, "expert_tensor_parallel_size": 1}
parallel_state.initialize_model_parallel(2, **experts, create_gloo_process_groups=False)
sizes = {"tensor_model_parallel_size": 2, "sequence_parallel": True, **experts}
config = ModelParallelConfig(use_cpu_initialization=True, **sizes)
config.qk_layernorm = False
how = {"bias": True, "skip_bias_add": True, "input_is_parallel": True}
group = parallel_state.get_expert_tensor_parallel_group()  # each rank by itself
ones = torch.nn.init.ones_
model = RowParallelLinear(
    2, 2, config=config, init_method=ones, is_expert=True, tp_group=group, **how
)
model.ddp_config = SimpleNamespace(use_megatron_fsdp=False)
for param in model.parameters():
    param.main_grad = torch.full_like(param, 1.0 + dist.get_rank())
all_reduce([model], config)
both = [None, None]
mine = [model.weight.main_grad[0, 0].item(), model.bias.main_grad[0].item()]
dist.all_gather_object(both, mine)
if dist.get_rank() == 0:
    print("of_weights =", json.dumps([weight for weight, _ in both]))
    print("of_biases =", json.dumps([bias for _, bias in both]))
dist.destroy_process_group()
