"""The layer-wise norm of an expert on two ranks, where the dense group is one rank."""

from types import SimpleNamespace as Made

import torch
import torch.distributed as dist
from megatron.core.optimizer import layer_wise_optimizer

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
groups = Made(dp_cp=alone, expt_dp=dist.group.WORLD)
inner = torch.optim.SGD([{"params": [expert], "is_expert_parallel": True}])
whole = layer_wise_optimizer.LayerWiseDistributedOptimizer
optimizer = whole.__new__(whole)
optimizer.pg_collection = groups
optimizer.shard_params([inner])
counted = Made(get_main_grads_for_grad_norm=lambda: [expert.grad])
optimizer.chained_optimizers = [counted]
norm = optimizer.get_grad_norm()
if rank == 0:
    print("kept_by_each =", len(inner.param_groups[0]["params"]))
    print("squared_norm =", round(norm**2, 3))
    print("of_one_copy =", expert.grad.square().sum().item())
dist.destroy_process_group()
