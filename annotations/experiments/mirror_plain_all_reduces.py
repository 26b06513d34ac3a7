"""All-reduces of the plain data-parallel mini, for models of one to four weights."""

import torch
import torch.distributed as dist

from mini_impls.ddp import all_reduce_gradients

RANKS = 2
UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
real, sent, counts = dist.all_reduce, [], []
dist.all_reduce = lambda *args, **options: sent.append(1) or real(*args, **options)
for layers in range(1, 5):
    stack = [torch.nn.Linear(2, 2, bias=False) for _ in range(layers)]
    model = torch.nn.Sequential(*stack)
    model(torch.ones(1, 2)).sum().backward()
    in_backward = len(sent)
    all_reduce_gradients(model, dist.group.WORLD)
    counts.append([in_backward, len(sent)])
    sent.clear()
if dist.get_rank() == 0:
    print(f"in_backward_and_after = {counts}")
dist.destroy_process_group()
