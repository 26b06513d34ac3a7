"""What PowerSGD's errors meet that were remembered before DDP rebuilt its buckets."""

import json

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
dist.init_process_group("gloo")


def second_step(width):
    """Return what a second step says where PowerSGD began with the first."""
    layers = [torch.nn.Linear(width, width, bias=False) for _ in range(3)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    state = powersgd.PowerSGDState(None)
    state.start_powerSGD_iter = 0  # the constructor refuses it
    model.register_comm_hook(state, powersgd.powerSGD_hook)
    try:
        for _ in range(2):
            model(torch.ones(2, width)).sum().backward()
    except RuntimeError as error:
        return str(error)
    return ""


one_bucket, cut = second_step(64), second_step(600)
if dist.get_rank() == 0:
    print("one_bucket =", json.dumps(one_bucket), "\ncut =", json.dumps(cut))
dist.destroy_process_group()
