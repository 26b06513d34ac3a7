"""What `_reduce` returns for a contiguous, a transposed and a broadcast tensor."""

import json

import torch
import torch.distributed as dist
from megatron.core.tensor_parallel import mappings

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
group = dist.group.WORLD
mine = float(dist.get_rank() + 1)

plain = torch.full((2, 3), mine)
returned = mappings._reduce(plain, group)
transposed = mappings._reduce(torch.full((2, 3), mine).t(), group)

batches = [torch.full((4, b, 3), mine).transpose(0, 1) for b in (1, 2)]
one, two = [mappings._reduce(batch, group) for batch in batches]

# `sum()` hands its input a gradient that is one number, expanded: not contiguous.
x = torch.ones(2, 3, requires_grad=True)
mappings.copy_to_tensor_model_parallel_region(x, group).sum().backward()

figures = {
    "contiguous": returned[0, 0].item(),
    "the_callers_own_tensor": plain[0, 0].item(),
    "transposed": transposed[0, 0].item(),
    "batch_of_one": one[0, 0, 0].item(),
    "batch_of_two": two[0, 0, 0].item(),
    "gradient_of_a_sum": x.grad[0, 0].item(),
}
for name, value in figures.items():
    if dist.get_rank() == 0:
        print(f"{name} = {json.dumps(value)}")
dist.destroy_process_group()
