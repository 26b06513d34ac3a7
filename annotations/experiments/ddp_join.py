"""All-reduces of DDP's Python in a step, and gradients once a rank has joined."""

import json

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

RANKS = 2

dist.init_process_group("gloo")
rank, sent, plain = dist.get_rank(), [0], dist.all_reduce


def counted(*args, **options):
    sent[0] += 1
    return plain(*args, **options)


dist.all_reduce = counted
cases = {"off": [True, False, 2, None], "join": [True, True, 3, None]}
cases |= {"fewer": [False, True, 3, None]}
cases |= {h: [False, True, 3, h] for h in ("allreduce_hook", "fp16_compress_hook")}
for name, (divide, enable, steps, hook) in cases.items():
    model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    if hook:
        model.register_comm_hook(None, getattr(default_hooks, hook))
    counts, gradients = [], []
    with model.join(divide_by_initial_world_size=divide, enable=enable):
        for _ in range(2 if rank else steps):
            model.zero_grad()
            before = sent[0]
            model(torch.ones(1, 1)).backward()
            counts.append(sent[0] - before)
            gradients.append(model.module.weight.grad.item())
    if rank == 0:
        print(name, "=", json.dumps({"all_reduces": counts, "gradients": gradients}))
dist.destroy_process_group()
