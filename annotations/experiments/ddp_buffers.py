"""Rank 1's buffer in each forward that began with 1 there and 0 on rank 0."""

import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2


class Buffered(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(1, 1)
        self.register_buffer("buffer", torch.zeros(1))

    def forward(self, inputs):
        seen.append(self.buffer.item())
        return self.linear(inputs)


def step(grad=True):
    model.module.buffer.fill_(dist.get_rank())
    with torch.set_grad_enabled(grad):
        loss = model(torch.ones(1, 1)).sum()
    if grad:
        loss.backward()


dist.init_process_group("gloo")
seen, everyone = [], [None, None]
model = DistributedDataParallel(Buffered())
for grad in (True, False, False, True, True):
    step(grad)
dist.all_gather_object(everyone, seen)
if dist.get_rank() == 0:
    print("train_eval_eval_train_train =", json.dumps(everyone[1]))
dist.destroy_process_group()
