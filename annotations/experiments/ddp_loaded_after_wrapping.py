"""What two DDP ranks hold and reduce after rank 0 alone loads weights later."""

import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2

dist.init_process_group("gloo")
rank = dist.get_rank()
layer = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.constant_(layer.weight, 10.0 + rank)
model = DistributedDataParallel(layer)


def of_both(value):
    """Return a figure of this rank and of the other one."""
    found = [None, None]
    dist.all_gather_object(found, value.item())
    return json.dumps(found)


wrapped = of_both(layer.weight)
if rank == 0:
    layer.load_state_dict({"weight": torch.ones(1, 1)})
loaded = of_both(layer.weight)
model(torch.full((1, 1), 2.0 + 4 * rank)).sum().backward()
gradients = of_both(layer.weight.grad)
torch.optim.SGD(model.parameters(), lr=0.25).step()
stepped = of_both(layer.weight)
if rank == 0:
    print(f"wrapped = {wrapped}\nloaded = {loaded}")
    print("inputs =", [2.0, 6.0])
    print(f"gradients = {gradients}\nstepped = {stepped}")
dist.destroy_process_group()
