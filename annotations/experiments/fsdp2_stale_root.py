"""What FSDP2 computes after its shards were filled in place between evaluations."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))


@torch.no_grad()
def evaluate(model, shards, value):
    for shard in shards:
        shard.fill_(value)
    return model(torch.ones(1, 4)).sum().item()


def show(name, reshard_after_forward):
    """Print the sum for weights of 1, of 2, and of 2 after everything was resharded."""
    layers = (torch.nn.Linear(4, 4, bias=False) for _ in range(2))
    model = torch.nn.Sequential(*layers)
    for module in (model[0], model):
        fully_shard(module, mesh=mesh, reshard_after_forward=reshard_after_forward)
    shards = list(model.parameters())
    sums = [evaluate(model, shards, 1.0), evaluate(model, shards, 2.0)]
    for module in (model[0], model):
        module.reshard()
    sums.append(evaluate(model, shards, 2.0))
    if dist.get_rank() == 0:
        print(name, "=", sums)


show("default", None)
show("one", 1)
show("true", True)
dist.destroy_process_group()
