"""Gradients of replicated weights after the sum over the tensor-parallel group."""

import json
from types import SimpleNamespace

import torch
import torch.distributed as dist
from megatron.core.distributed.finalize_model_grads import (
    _allreduce_non_tensor_model_parallel_grads as reduce,
)

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
model = torch.nn.ParameterDict(
    {name: torch.nn.Parameter(torch.ones(1)) for name in ("marked", "unmarked")}
)
model["q_layernorm"] = torch.nn.Parameter(torch.ones(1))
model.ddp_config = SimpleNamespace(use_megatron_fsdp=False)
model["marked"].sequence_parallel = True
for name, sequence, qk in ("sequence", True, False), ("qk_layernorm", False, True):
    for parameter in model.values():
        parameter.main_grad = torch.full((1,), dist.get_rank() + 1.0)
    config = SimpleNamespace(sequence_parallel=sequence, qk_layernorm=qk)
    reduce([model], config, dist.group.WORLD)
    grads = {name: weight.main_grad.item() for name, weight in model.items()}
    if dist.get_rank() == 0:
        print(f"{name} = {json.dumps(grads)}")
dist.destroy_process_group()
