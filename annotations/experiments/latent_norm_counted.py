"""A norm before a column layer, summed by its name without sequence parallelism."""

import json
from types import SimpleNamespace

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.distributed.finalize_model_grads import (
    _allreduce_non_tensor_model_parallel_grads as reduce,
)
from megatron.core.model_parallel_config import ModelParallelConfig
from megatron.core.tensor_parallel.layers import ColumnParallelLinear

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(2, create_gloo_process_groups=False)
config = ModelParallelConfig(tensor_model_parallel_size=2, use_cpu_initialization=True)
ones = torch.nn.init.ones_
up = ColumnParallelLinear(4, 8, config=config, init_method=ones, bias=False)
norm = torch.nn.LayerNorm(4, bias=False)
model = torch.nn.ModuleDict({"q_layernorm": norm, "up": up})
model.ddp_config = SimpleNamespace(use_megatron_fsdp=False)
latent = torch.tensor([[[1.0, 2.0, 3.0, 4.0]]])
up(norm(latent))[0].sum().backward()
whole = torch.nn.functional.layer_norm(latent, (4,)) * 8  # from 8 outputs

norm.weight.main_grad = norm.weight.grad.clone()
before = round((norm.weight.main_grad / whole).mean().item(), 3)
settings = SimpleNamespace(sequence_parallel=False, qk_layernorm=True)
reduce([model], settings, dist.group.WORLD)
after = round((norm.weight.main_grad / whole).mean().item(), 3)
if dist.get_rank() == 0:
    print(f"before = {json.dumps(before)}\nafter = {json.dumps(after)}")
dist.destroy_process_group()
