"""What a backward reduces whose forward went around the wrapper, or ran in no_sync."""

import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
dist.init_process_group("gloo")
x = torch.full((1, 1), 1.0 + 2 * dist.get_rank())


def gradient(*forwards):
    """Return the gradient of the last forward's backward alone."""
    model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    for forward in forwards:
        with model.no_sync() if forward == "inside" else contextlib.nullcontext():
            output = (model.module if forward == "around" else model)(x)
    output.backward()
    return model.module.weight.grad.item()


around, armed = gradient("around"), gradient("outside", "around")
inside, armed_inside = gradient("inside"), gradient("outside", "inside")
if dist.get_rank() == 0:
    print("around_the_wrapper =", around)
    print("after_a_forward_of_the_wrapper =", armed)
    print("inside =", inside)
    print("inside_after_a_forward_outside =", armed_inside)
dist.destroy_process_group()
