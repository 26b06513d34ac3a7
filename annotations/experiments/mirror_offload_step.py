"""What the two ways of the mini send in a step, beside that of ds_offload_step."""

import json

import torch

from mini_impls.offload import HostLink, HostOptimizer, OverlappedHostOptimizer

RANKS = 1
UPSTREAMS = ["minis"]


class Noted(HostLink):
    def start(self, source, way, into=None):
        moved.append({"to host": "down", "to device": "up"}[way])
        return super().start(source, way, into)


link, sgd, moved = Noted(torch.device("cpu")), torch.optim.SGD, []
ways = {"plain": HostOptimizer, "overlapped": OverlappedHostOptimizer}
for way, kind in ways.items():
    weight = torch.nn.Parameter(torch.ones(6))
    optimizer = kind([weight], sgd, link, lr=0.1)
    for name, microbatches in {"one": 1, "two": 2}.items():
        moved.clear()
        for _ in range(microbatches):
            weight.sum().backward()
        optimizer.step()
        print(f"{way}_{name} =", json.dumps(moved))
link.close()
