"""One parameter on two ranks, under ZeRO stage 1: torch's optimizer, and the mini."""

import json

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer

from mini_impls.zero import ZeroStage1

RANKS = 2
UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
param = torch.nn.Parameter(torch.ones(4))
try:
    ZeroStage1([param], torch.optim.SGD, dist.group.WORLD, lr=0.5)
    mini = "accepted"
except ValueError as error:
    mini = str(error)
optimizer = ZeroRedundancyOptimizer([param], torch.optim.SGD, lr=0.5)
param.grad = torch.ones(4)
optimizer.step()
if dist.get_rank() == 0:
    print("mini =", json.dumps(mini))
    print("torch_parameter_after_a_step =", param[0].item())
