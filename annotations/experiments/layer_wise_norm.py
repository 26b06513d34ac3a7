"""The layer-wise norm of an expert on two ranks, where the dense group is one rank."""

from types import SimpleNamespace as Made

import torch
import torch.distributed as dist
from megatron.core.optimizer.layer_wise_optimizer import LayerWiseDistributedOptimizer
from megatron.core.optimizer.optimizer import MegatronOptimizer

RANKS = 2
UPSTREAMS = ["megatron"]


def on_the_cpu(make):  # no CUDA here
    return lambda *sizes, device=None, **given: make(*sizes, **given)


torch.zeros, torch.tensor = on_the_cpu(torch.zeros), on_the_cpu(torch.tensor)
dist.init_process_group("gloo")
rank = dist.get_rank()
alone = [dist.new_group([number]) for number in range(2)][rank]
expert = torch.nn.Parameter(torch.ones(4))
expert.grad = torch.ones(4)
expert.tensor_model_parallel = True  # as core's and Transformer Engine's layers mark it
groups = Made(dp_cp=alone, expt_dp=dist.group.WORLD)
inner = torch.optim.SGD([{"params": [expert], "is_expert_parallel": True}])
optimizer = object.__new__(LayerWiseDistributedOptimizer)
optimizer.pg_collection = groups
optimizer.shard_params([inner])
plain = Made(use_precision_aware_optimizer_no_fp8_or_ds_fp8=False)
held = Made(get_parameters=lambda: [expert], tp_group=dist.group.WORLD, config=plain)
to_norm = MegatronOptimizer.get_main_grads_for_grad_norm
held.get_main_grads_for_grad_norm = lambda: to_norm(held)
optimizer.chained_optimizers = [held]
norm = optimizer.get_grad_norm()
if rank == 0:
    print("kept_by_each =", len(inner.param_groups[0]["params"]))
    print("squared_norm =", round(norm**2, 3))
    print("of_one_copy =", expert.grad.square().sum().item())
dist.destroy_process_group()
