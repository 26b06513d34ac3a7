"""All-gathers of a backward before and after an evaluation: in FSDP2, in the mini."""

import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

from mini_impls import fsdp_options as mini

RANKS = 2
UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
names, all_gather = ["0", "1", "2"], dist.all_gather_single


def layers():
    return torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in names))


def backward_gathers(model):
    loss, sent = model(torch.ones(1, 4)).sum(), []
    dist.all_gather_single = lambda *a, **k: sent.append(1) or all_gather(*a, **k)
    loss.backward()
    dist.all_gather_single = all_gather
    return len(sent)


sides = {"mini": layers(), "torch": layers()}
mini.fully_shard(sides["mini"], dist.group.WORLD, modules=names)
_ = [fully_shard(sides["torch"].get_submodule(name)) for name in [*names, ""]]
for side, model in sides.items():
    before = backward_gathers(model)
    torch.no_grad()(model)(torch.ones(1, 4))
    gathers = json.dumps([before, backward_gathers(model)])
    print(f"{side} = {gathers}" * (dist.get_rank() == 0))
