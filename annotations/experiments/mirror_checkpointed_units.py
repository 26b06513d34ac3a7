"""All-gathers of a backward through one checkpoint around three units, on each side."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.utils.checkpoint import checkpoint

from mini_impls.fsdp_flat import fully_shard_flat

RANKS = 2
UPSTREAMS = ["minis"]


def note(call):
    return lambda *a, **k: sent.append(1) or call(*a, **k)


class Model(torch.nn.Sequential):
    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False)


def layers(wrap=lambda layer: layer):
    return Model(*(wrap(torch.nn.Linear(4, 4)) for _ in range(3)))


dist.init_process_group("gloo")
sent, cpu, gathers = [], torch.device("cpu"), (dist.all_gather, dist.all_gather_single)
dist.all_gather, dist.all_gather_single = map(note, gathers)
models = {"mini": layers(), "fsdp2": fully_shard(layers(fully_shard))}
fully_shard_flat(models["mini"], dist.group.WORLD, modules=["0", "1", "2"])
units = layers(lambda layer: FullyShardedDataParallel(layer, device_id=cpu))
models["fsdp1"] = FullyShardedDataParallel(units, device_id=cpu)
for side, model in models.items():
    loss = model(torch.ones(1, 4, requires_grad=True)).sum()
    del sent[:]
    loss.backward()
    print(f"{side} = {len(sent)}" * (dist.get_rank() == 0))
