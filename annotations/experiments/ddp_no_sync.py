"""Which half of a step must be inside no_sync for the reduction to stay out."""

import contextlib
import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2

dist.init_process_group("gloo")
rank = dist.get_rank()


def gradient(forward_inside, backward_inside):
    model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    with model.no_sync() if forward_inside else contextlib.nullcontext():
        output = model(torch.full((1, 1), 1.0 + 2 * rank))
    with model.no_sync() if backward_inside else contextlib.nullcontext():
        output.backward()
    return model.module.weight.grad.item()


figures = {
    "both_inside": gradient(True, True),
    "forward_inside": gradient(True, False),
    "backward_inside": gradient(False, True),
    "none_inside": gradient(False, False),
}
if rank == 0:
    for name, value in figures.items():
        print(name, "=", json.dumps(value))
