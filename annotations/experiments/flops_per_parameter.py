"""Floating-point operations of a linear layer for each parameter and token."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

RANKS = 1
TOKENS = 16

layer = torch.nn.Linear(32, 32, bias=False)
x = torch.ones(TOKENS, 32, requires_grad=True)


def counted(call):
    with FlopCounterMode(display=False) as counter:
        result = call()
    return counter.get_total_flops() // (TOKENS * layer.weight.numel()), result


forward, y = counted(lambda: layer(x))
backward, _ = counted(y.sum().backward)
again = checkpoint(layer, x, use_reentrant=True).sum()
repeated, _ = counted(again.backward)
kept = {"forward": forward, "backward": backward, "total": forward + backward}
print("kept =", json.dumps(kept))
print("recomputed =", forward + repeated)
dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
fully_shard(layer, mesh=init_device_mesh("cpu", (4,)))
first, y = counted(lambda: layer(x))
second, _ = counted(y.sum().backward)
held = layer.weight.to_local().numel() / layer.weight.numel()
print("one_of_four_ranks =", json.dumps({"total": first + second, "held": held}))
