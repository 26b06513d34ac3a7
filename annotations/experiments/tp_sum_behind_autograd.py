"""A gradient through an activation whose saved output the g operator overwrites."""

import json

import torch
import torch.distributed as dist
from megatron.core.tensor_parallel import mappings

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
figures = {}
for name, function in (
    ("exp", torch.exp),
    ("relu", torch.relu),
    ("product", lambda x: x * 2),
):
    x, right = (torch.ones(1, requires_grad=True) for _ in range(2))
    y = function(x)
    mappings.reduce_from_tensor_model_parallel_region(
        y, dist.group.WORLD
    ).sum().backward()
    function(right).sum().backward()
    ratio = round((x.grad / right.grad).item(), 3)
    figures[name] = {"version": y._version, "times_the_gradient": ratio}

# The same write by autograd's own means is refused.
x = torch.ones(1, requires_grad=True)
try:
    torch.exp(x).mul_(2).sum().backward()
except RuntimeError as error:
    figures["mul_"] = "modified by an inplace operation" in str(error)

for name, value in figures.items():
    if dist.get_rank() == 0:
        print(f"{name} = {json.dumps(value)}")
dist.destroy_process_group()
