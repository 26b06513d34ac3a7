"""What a change of the shards between two evaluations does: in FSDP2, in the mini."""

import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

from mini_impls import fsdp_options as mini

RANKS = 2
UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
ours, theirs = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
mini.fully_shard(ours, dist.group.WORLD, modules=[""])
fully_shard(theirs)
for figure, model in {"mini_is_stale": ours, "torch_is_stale": theirs}.items():
    with torch.no_grad():
        shards = list(model.parameters())
        model(torch.ones(1, 4))
        for shard in shards:
            shard.zero_()
        largest = model(torch.ones(1, 4)).abs().max().item()
    if dist.get_rank() == 0:
        print(figure, "=", json.dumps(largest > 0))
