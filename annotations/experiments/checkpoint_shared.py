"""What torch's DDP makes of a layer that two checkpointed regions share."""

import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

RANKS = 2


class Shared(torch.nn.Module):
    def __init__(self, reentrant: bool):
        super().__init__()
        self.first, self.twice = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        self.reentrant = reentrant

    def forward(self, x):
        x = checkpoint(self.twice, self.first(x), use_reentrant=self.reentrant)
        return checkpoint(self.twice, x, use_reentrant=self.reentrant)


def ends(reentrant, **given):
    wrapped = DistributedDataParallel(Shared(reentrant), **given)
    try:
        wrapped(torch.ones(1, 2)).sum().backward()
    except RuntimeError as error:
        return "ready twice" if "ready only once" in str(error) else str(error)
    return "ran"


dist.init_process_group("gloo")
found = {"reentrant": ends(True), "hooks": ends(False)}
found["reentrant, static_graph"] = ends(True, static_graph=True)
if dist.get_rank() == 0:
    print("shared =", json.dumps(found))
dist.destroy_process_group()
