"""Which units of SHARD_GRAD_OP are gathered before and after one of them is reached."""

import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import ShardingStrategy
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
strategy, device = ShardingStrategy.SHARD_GRAD_OP, torch.device("cpu")


class Both(torch.nn.ModuleList):
    def forward(self, x):
        return [unit(x) for unit in self]


def wrap(module):
    return FSDP(module, sharding_strategy=strategy, device_id=device)


def show(name):
    flats = (unit._flat_param._full_param_padded for unit in units)
    sizes = [flat.untyped_storage().size() for flat in flats]
    print(name, "=", json.dumps([size > 0 for size in sizes]))


units = [wrap(torch.nn.Linear(4, 4)) for _ in range(2)]
outputs = wrap(Both(units))(torch.ones(1, 4))
show("after_forward")
outputs[0].sum().backward()
show("after_backward")
