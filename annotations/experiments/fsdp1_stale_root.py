"""What FSDP1 computes after its shards were filled in place between evaluations."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

RANKS = 2

dist.init_process_group("gloo")
device = torch.device("cpu")
inner = FSDP(torch.nn.Linear(4, 4, bias=False), device_id=device)
root = torch.nn.Sequential(inner, torch.nn.Linear(4, 4, bias=False))
model = FSDP(root, device_id=device)
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
fresh = 4 * 4 * 4 * 2.0 * 2.0
if dist.get_rank() == 0:
    print(f"ones = {ones}\ntwos = {twos}\ntwos_if_both_were_seen = {fresh}")
dist.destroy_process_group()
