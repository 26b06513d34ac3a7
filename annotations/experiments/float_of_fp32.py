"""Whether Megatron's optimizer gets a copy of a gradient, by the buffer's dtype."""

import json
from types import SimpleNamespace as Made

import torch
from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer

RANKS = 1
UPSTREAMS = ["megatron"]

copied = {}
for dtype in torch.float32, torch.bfloat16:
    weight = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    weight.main_grad, shard = torch.ones(4, dtype=dtype), torch.ones(2)
    optimizer = object.__new__(DistributedOptimizer)
    optimizer.is_stub_optimizer = False
    optimizer.ddp_config = Made(use_megatron_fsdp=False)
    optimizer.config = Made(use_precision_aware_optimizer_no_fp8_or_ds_fp8=False)
    optimizer.model_fp32_groups = optimizer.shard_fp32_groups = []
    optimizer.model_float16_groups = [[weight]]
    optimizer.shard_fp32_from_float16_groups = [[shard]]
    half = Made(start=2, end=4, size=2)
    optimizer._get_model_param_range_map = lambda _, half=half: {"param": half}
    optimizer._copy_model_grads_to_main_grads()
    ends = weight.main_grad[2:].data_ptr(), shard.grad.data_ptr()
    copied[str(dtype)] = ends[0] != ends[1]
print("copied =", json.dumps(copied))
