"""What PowerSGD makes of a weight whose gradient is zero on all ranks, in two ways."""

import json

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd
from torch.nn.parallel import DistributedDataParallel

RANKS = 2


def gradient_is_nan(steps, **options):
    """Return after each step whether the weight's gradient has a NaN."""
    model = DistributedDataParallel(torch.nn.Linear(64, 64))
    state = powersgd.PowerSGDState(None, start_powerSGD_iter=2, **options)
    model.register_comm_hook(state, powersgd.powerSGD_hook)
    seen = []
    for given in steps:
        model.zero_grad()
        model(torch.full((8, 64), given)).sum().backward()
        seen.append(bool(model.module.weight.grad.isnan().any()))
    return seen


dist.init_process_group("gloo")
steps = [1.0, 1.0, 0.0, 1.0]
default = gradient_is_nan(steps)
rank_three = gradient_is_nan(steps, matrix_approximation_rank=3)
epsilon = gradient_is_nan(steps, orthogonalization_epsilon=1e-8)
cold = gradient_is_nan(steps, warm_start=False)
forgetful = gradient_is_nan(steps, warm_start=False, use_error_feedback=False)
if dist.get_rank() == 0:
    print("default =", json.dumps(default), "\nepsilon =", json.dumps(epsilon))
    print("rank_three =", json.dumps(rank_three), "\ncold =", json.dumps(cold))
    print("forgetful =", json.dumps(forgetful))
