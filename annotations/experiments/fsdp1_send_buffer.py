"""Whether an FSDP1 gather sends the shard that the optimizer updates, where it lies."""

import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
layer = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8))
model = FSDP(layer, device_id=torch.device("cpu"))
all_gather, sent = dist.all_gather, []


def noting(outputs, shard, **kwargs):
    sent.append(shard.data_ptr())
    return all_gather(outputs, shard, **kwargs)


dist.all_gather = noting
flat = model._flat_param
model(torch.ones(1, 8))
print("sends_the_shard_itself =", json.dumps(sent == [flat._local_shard.data_ptr()]))
