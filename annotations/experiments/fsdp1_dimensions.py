"""Of how many dimensions and elements the parameters are that a wrapped layer has."""

import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

RANKS = 2


def dimensions(module):
    return [parameter.ndim for parameter in module.parameters()]


def wrapped(use_orig_params):
    return FullyShardedDataParallel(
        torch.nn.Linear(4, 4),
        use_orig_params=use_orig_params,
        device_id=torch.device("cpu"),
    )


dist.init_process_group("gloo")
original = wrapped(True)
found = {
    "flat": dimensions(wrapped(False)),
    "original": dimensions(original),
    "original_elements": [parameter.numel() for parameter in original.parameters()],
    "fully_shard": dimensions(fully_shard(torch.nn.Linear(4, 4))),
}
if dist.get_rank() == 0:
    print("\n".join(f"{name} = {json.dumps(what)}" for name, what in found.items()))
