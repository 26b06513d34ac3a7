"""Which gradients the ranks of a tensor-parallel group give to the norm."""

import json
from types import SimpleNamespace

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.optimizer.optimizer import MegatronOptimizer

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(2, create_gloo_process_groups=False)
config = SimpleNamespace(use_precision_aware_optimizer_no_fp8_or_ds_fp8=False)
names = "replicated", "sharded", "sharded_without_the_mark", "second_copy"
parameters = {name: torch.nn.Parameter(torch.ones(1)) for name in names}
for parameter in parameters.values():
    parameter.grad = torch.ones(1)
parameters["sharded"].tensor_model_parallel = True
parameters["second_copy"].tensor_model_parallel = True
parameters["second_copy"].shared = True

for name, parameter in parameters.items():
    optimizer = SimpleNamespace(config=config, get_parameters=lambda p=parameter: [p])
    counted = len(MegatronOptimizer.get_main_grads_for_grad_norm(optimizer))
    both = [None, None]
    dist.all_gather_object(both, counted)
    if dist.get_rank() == 0:
        print(f"{name} = {json.dumps(both)}")
dist.destroy_process_group()
