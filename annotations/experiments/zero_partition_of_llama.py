"""How evenly ZeroRedundancyOptimizer deals out the tensors of Llama 3 8B."""

import json

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.testing._internal.distributed.fake_pg import FakeStore

HIDDEN, FFN, KEYS, VOCABULARY, LAYERS = 4096, 14336, 1024, 128256, 32

shapes = [(VOCABULARY, HIDDEN), (VOCABULARY, HIDDEN), (HIDDEN,)]
for _ in range(LAYERS):
    shapes += [(HIDDEN, HIDDEN)] * 2 + [(KEYS, HIDDEN)] * 2
    shapes += [(FFN, HIDDEN)] * 3 + [(HIDDEN,)] * 2
params = [torch.nn.Parameter(torch.empty(shape, device="meta")) for shape in shapes]
print("tensors =", len(params))
print("elements =", sum(p.numel() for p in params))
fullest, alike, empty = [], [], []
for ranks in (8, 64, 512):
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    optimizer = ZeroRedundancyOptimizer(params, torch.optim.SGD, lr=0.1)
    held = [
        sum(p.numel() for group in groups for p in group["params"])
        for groups in optimizer._partition_parameters()
    ]
    fullest.append(round(max(held) * ranks / sum(held), 1))
    alike.append(held.count(max(held)))
    empty.append(held.count(0))
    dist.destroy_process_group()
print("fullest =", json.dumps(fullest))
print("alike =", json.dumps(alike))
print("empty =", json.dumps(empty))
