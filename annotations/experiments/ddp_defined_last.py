"""MiB handed to DDP's hook before the last gradient, by the order of definition."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2

dist.init_process_group("gloo")


class Layers(torch.nn.ModuleList):
    def forward(self, hidden, order):
        for at in order:
            hidden = self[at](hidden)
        return hidden


def early(first, **options):
    layers = Layers(torch.nn.Linear(512, 512, bias=False) for _ in range(8))
    order, told, seen = sorted(range(8), key=lambda at: at != first), [], []
    model = DistributedDataParallel(layers, bucket_cap_mb=1, **options)

    def hook(state, bucket):
        told.append(bucket.buffer().nbytes >> 20)
        (future := torch.futures.Future()).set_result(bucket.buffer())
        return future

    model.register_comm_hook(None, hook)
    layers[first].weight.register_hook(lambda grad: seen.append(sum(told)))
    for _ in range(3):
        told.clear()
        model(torch.ones(1, 512), order).sum().backward()
    return seen


options = {"find_unused_parameters": True}
runs = early(0, **options), early(7, **options), early(7)
if dist.get_rank() == 0:
    print("in_order =", runs[0], "\nlast =", runs[1], "\nby_default =", runs[2])
