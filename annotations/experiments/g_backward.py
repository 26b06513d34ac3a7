"""The gradient of a sum over two ranks: Megatron's g beside torch's own all-reduce."""

import json

import torch
import torch.distributed as dist
from megatron.core.tensor_parallel import mappings
from torch.distributed.nn.functional import all_reduce

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")


def g(x):
    return mappings.reduce_from_tensor_model_parallel_region(x, dist.group.WORLD)


def gradient(reduce):
    """Return the gradient of one term of a sum that every rank then multiplies by 3."""
    x = torch.ones(1, requires_grad=True)
    (reduce(x * 1.0) * 3.0).sum().backward()
    return x.grad.item()


for name, reduce in ("megatron", g), ("torch_distributed_nn", all_reduce):
    value = gradient(reduce)
    if dist.get_rank() == 0:
        print(f"{name} = {json.dumps(value)}")
dist.destroy_process_group()
