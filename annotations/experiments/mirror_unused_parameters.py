"""When the bucket of an unused parameter leaves: in torch's DDP, and in the mini."""

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from mini_impls import ddp as mini

RANKS = 2
UPSTREAMS = ["minis"]

heard, start = [], mini.ParamAndGradBucket.start_grad_sync


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("a", "b", "unused", "c"):  # two buckets, two parameters in each
            self.register_parameter(name, torch.nn.Parameter(torch.ones(64)))

    def forward(self, x):
        for name in "abc":
            getattr(self, name).register_hook(lambda _, name=name: heard.append(name))
        return (x * self.a * self.b * self.c).sum()


def send(state, bucket):
    return heard.append("send") or allreduce_hook(state, bucket)


dist.init_process_group("gloo")
options = {"find_unused_parameters": True, "bucket_cap_mb": 512 / 2**20}
mini.ParamAndGradBucket.start_grad_sync = lambda *a: heard.append("send") or start(*a)
sides = {"mini": mini.DistributedDataParallel(Model(), dist.group.WORLD, **options)}
sides["torch"] = DistributedDataParallel(Model(), **options)
sides["torch"].register_comm_hook(None, send)
for side, model in sides.items():
    model(torch.ones(64)).backward()
    print(f'{side} = "{" ".join(heard[-5:])}"' * (dist.get_rank() == 0))
