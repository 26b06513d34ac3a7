"""What DDP says to a hook whose annotations are strings, as one import makes them."""

from __future__ import annotations

import json

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

RANKS = 1


def hook(state, bucket: dist.GradBucket):
    return default_hooks.allreduce_hook(state, bucket)


dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(1, 1))
try:
    model.register_comm_hook(None, hook)
except ValueError as error:
    print("refused =", json.dumps(str(error)))
