"""Bytes of each bucket of 1,442,400-byte weights, against the cap asked for."""

import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2

dist.init_process_group("gloo")


def bucket_bytes(**options):
    """Bytes of each bucket of the second step, of twelve weights of 1,442,400 bytes."""
    layers = [torch.nn.Linear(601, 600, bias=False) for _ in range(12)]
    joined = torch.nn.Module()
    joined.layers = torch.nn.ModuleList(layers)
    joined.forward = lambda x: sum(layer(x).sum() for layer in layers)
    model = DistributedDataParallel(joined, **options)
    seen = []

    def hook(state, bucket):
        seen.append(bucket.buffer().nbytes)
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    model.register_comm_hook(None, hook)
    for _ in range(2):
        seen.clear()
        model(torch.ones(1, 601)).backward()
    return seen


default, capped = bucket_bytes(), bucket_bytes(bucket_cap_mb=4)
if dist.get_rank() == 0:
    print("default =", json.dumps(default), "\ncapped =", json.dumps(capped))
    print("cap =", 4 * 1024 * 1024, "\ngradients =", 12 * 601 * 600 * 4)
dist.destroy_process_group()
