"""Whether two roots get through backward, with streams of their own and shared."""

import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard, share_comm_ctx

RANKS = 2

dist.init_process_group("gloo")


def root(layers):
    """Return a root with a group for each of its layers."""
    model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(layers)])
    for layer in model:
        fully_shard(layer)
    return fully_shard(model)


def backward(shared):
    """Return what the two backwards came to, the second root's first."""
    one, two = root(3), root(2)
    share_comm_ctx([one, two] if shared else [])
    sent = one(torch.ones(2, 4))
    received = sent.detach().requires_grad_()
    two(received).sum().backward()
    try:
        sent.backward(received.grad)
    except IndexError as error:
        return type(error).__name__
    return "done"


found = {"apart": backward(False), "shared": backward(True)}
for name, result in found.items():
    if dist.get_rank() == 0:
        print(f"{name} = {json.dumps(result)}")
dist.destroy_process_group()
