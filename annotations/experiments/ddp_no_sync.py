"""Which half of a step must be inside no_sync for the reduction to stay out."""

import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2

dist.init_process_group("gloo")
x = torch.full((1, 1), 1.0 + 2 * dist.get_rank())


def show(name, *inside):
    """Print the gradient that is left; forward and backward of each microbatch."""
    model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    for forward_inside, backward_inside in inside:
        with model.no_sync() if forward_inside else contextlib.nullcontext():
            output = model(x)
        with model.no_sync() if backward_inside else contextlib.nullcontext():
            output.backward()
    if dist.get_rank() == 0:
        print(name, "=", model.module.weight.grad.item())


show("both_inside", (True, True))
show("forward_inside", (True, False))
show("backward_inside", (False, True))
show("none_inside", (False, False))
show("accumulated", (True, True), (False, False))
dist.destroy_process_group()
