"""Whether the first of two roots gets through backward, its streams shared or not."""

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


def backward(name, shared, between):
    """Print how it ended, after the second root's backward and a third's forward."""
    one, two, three = root(3), root(2), root(between)
    share_comm_ctx([one, two, three] if shared else [])
    sent = one(torch.ones(2, 4))
    received = sent.detach().requires_grad_()
    two(received).sum().backward()
    if between:
        three(torch.ones(2, 4))
    try:
        result = sent.backward(received.grad) or "done"
    except IndexError as error:
        result = type(error).__name__
    if dist.get_rank() == 0:
        print(f"{name} = {json.dumps(result)}")


for name, between in [("apart", 0), ("shared", 0), ("one_more", 1), ("two_more", 2)]:
    backward(name, name != "apart", between)
dist.destroy_process_group()
