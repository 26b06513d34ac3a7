"""What a rank keeps of a flat gradient inside FSDP1's no_sync and outside it."""

import contextlib
import json

import torch
import torch.distributed as dist
from torch.distributed import fsdp

RANKS = 2

dist.init_process_group("gloo")
precision = fsdp.MixedPrecision(torch.bfloat16, torch.float32)


def show(name, strategy, inside):
    model = fsdp.FullyShardedDataParallel(
        torch.nn.Linear(16, 16, bias=False),
        sharding_strategy=fsdp.ShardingStrategy[strategy],
        mixed_precision=precision,
        device_id=torch.device("cpu"),
    )
    for _ in range(2):
        with model.no_sync() if inside else contextlib.nullcontext():
            model(torch.ones(1, 16)).sum().backward()
    flat = model._flat_param
    found = {"elements": flat.grad.numel(), "dtype": str(flat.grad.dtype)}
    found["gathered"] = flat._full_param_padded.untyped_storage().size() > 0
    if dist.get_rank() == 0:
        print(name, "=", json.dumps(found))


show("inside", "FULL_SHARD", True)
show("inside_shard_grad_op", "SHARD_GRAD_OP", True)
show("outside", "FULL_SHARD", False)
dist.destroy_process_group()
