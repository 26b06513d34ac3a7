"""The gradient of what `from_local` called a pending sum, mean or maximum."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
)

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
rank = dist.get_rank()


def gradient(pending):
    """Return the whole of 1.0 and rank 1's 3.0, and what it gives rank 0's as loss."""
    mine = torch.tensor([1.0 + 2 * rank], requires_grad=True)
    given = DTensor.from_local(mine, mesh, [Partial(pending)], run_check=False)
    whole = given.redistribute(mesh, [Replicate()]).to_local()
    whole.sum().backward()
    return [whole.item(), mine.grad.item()]


found = {name: gradient(name) for name in ("sum", "avg", "max")}
if rank == 0:
    for name, values in found.items():
        print(f"of_{name} =", json.dumps(values))
dist.destroy_process_group()
