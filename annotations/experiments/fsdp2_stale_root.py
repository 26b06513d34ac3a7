"""What FSDP2 computes after its shards were filled in place between evaluations."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
model = torch.nn.Sequential(*(torch.nn.Linear(4, 4, bias=False) for _ in range(2)))
fully_shard(model[0], mesh=mesh)
fully_shard(model, mesh=mesh)
shards = list(model.parameters())


@torch.no_grad()
def evaluate():
    return model(torch.ones(1, 4)).sum().item()


@torch.no_grad()
def fill(value):
    for shard in shards:
        shard.fill_(value)


fill(1.0)
ones = evaluate()
fill(2.0)
twos = evaluate()
model.reshard()
after_reshard = evaluate()
if dist.get_rank() == 0:
    print(f"ones = {ones}\ntwos = {twos}\ntwos_after_reshard = {after_reshard}")
