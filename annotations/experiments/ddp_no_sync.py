"""Which half of a step must be inside no_sync for the reduction to stay out."""

import contextlib

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
dist.init_process_group("gloo")
x = torch.full((1, 1), 1.0 + 2 * dist.get_rank())


def show(name, *inside):
    sent = []
    model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    model.register_comm_hook(
        None, lambda group, bucket: sent.append(1) or allreduce_hook(group, bucket)
    )
    for forward_inside, backward_inside in inside:
        with model.no_sync() if forward_inside else contextlib.nullcontext():
            output = model(x)
        with model.no_sync() if backward_inside else contextlib.nullcontext():
            output.backward()
    if dist.get_rank() == 0:
        print(name, "=", model.module.weight.grad.item())
    return len(sent)


show("both_inside", (True, True))
show("forward_inside", (True, False))
show("backward_inside", (False, True))
show("none_inside", (False, False))
show("accumulated", (True, True), (False, False))
sent = [show("three_synced", *[(False, False)] * 3)]
sent += [show("three_accumulated", *[(True, True)] * 2, (False, False))]
if dist.get_rank() == 0:
    print("reductions_of_the_threes =", sent)
dist.destroy_process_group()
