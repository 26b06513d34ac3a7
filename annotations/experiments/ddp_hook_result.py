"""What DDP makes of the tensor that a hook returns for a bucket of two numbers."""

import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2

dist.init_process_group("gloo")


def gradient(result):
    """Return the gradient that a hook leaves which returns this, or what is raised."""
    layer = torch.nn.Linear(2, 1, bias=False)
    model = DistributedDataParallel(layer)

    def hook(state, bucket):
        future = torch.futures.Future()
        future.set_result(result)
        return future

    model.register_comm_hook(None, hook)
    try:
        model(torch.ones(1, 2)).sum().backward()
    except RuntimeError as error:
        return type(error).__name__
    return [layer.weight.grad.dtype, layer.weight.grad.flatten().tolist()]


seen = {
    "longer": gradient(torch.arange(5.0)),
    "shorter": gradient(torch.ones(1)),
    "later_slice": gradient(torch.arange(6.0)[4:]),
    "whole_numbers": gradient(torch.tensor([3, 4])),
}
if dist.get_rank() == 0:
    for name, what in seen.items():
        print(name, "=", json.dumps(what, default=str))
