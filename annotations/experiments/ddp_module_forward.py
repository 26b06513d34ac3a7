"""What a backward reduces whose forward went around DDP's wrapper."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
dist.init_process_group("gloo")
x = torch.full((1, 1), 1.0 + 2 * dist.get_rank())


def gradient(*forwards):
    """Return the gradient of the last forward's backward alone."""
    model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    outputs = [(model if wrapped else model.module)(x) for wrapped in forwards]
    outputs[-1].backward()
    return model.module.weight.grad.item()


around, armed = gradient(False), gradient(True, False)
if dist.get_rank() == 0:
    print("around_the_wrapper =", around)
    print("after_a_forward_of_the_wrapper =", armed)
dist.destroy_process_group()
