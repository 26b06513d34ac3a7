"""How far apart the weights of two ranks are that begin apart, and after a step."""

import torch
import torch.distributed as dist
from torch.distributed._composable import replicate_with_fsdp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

RANKS = 2

dist.init_process_group("gloo")
rank, names = dist.get_rank(), ("replicate", "shard")
mesh = init_device_mesh("cpu", (2,))
hybrid = init_device_mesh("cpu", (2, 1), mesh_dim_names=names)


def show(name, wrap):
    """Print what rank 1's weight has more than rank 0's, at first and after a step."""
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(model.weight, 5.0 * rank)
    model, apart = wrap(model), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(2):
        weight = next(model.parameters()).detach()
        mine = weight.to_local() if hasattr(weight, "to_local") else weight
        seen = [torch.zeros(1, 1), torch.zeros(1, 1)]
        dist.all_gather(seen, mine.clone())
        apart.append((seen[1] - seen[0]).item())
        model(torch.ones(1, 1)).sum().backward()
        optimizer.step()
    if rank == 0:
        print(name, "=", apart)


show("ddp", DistributedDataParallel)
show("replicate", lambda model: replicate_with_fsdp.replicate(model, mesh=mesh))
show("hybrid", lambda model: fully_shard(model, mesh=hybrid))
dist.destroy_process_group()
