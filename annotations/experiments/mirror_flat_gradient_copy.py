"""Whether the flat gradient is copied before it is reduced: in FSDP1, in the mini."""

import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp import _runtime_utils as upstream

from mini_impls import fsdp_flat as mini

RANKS = 2
UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
copied, handle = [], mini.FlatModule
pad, tensors_of = handle.pad, upstream._get_reduce_scatter_tensors


def mini_pad(self, grad):
    copied.append(pad(self, grad).data_ptr() != grad.data_ptr())
    return pad(self, grad)


def upstream_tensors(state, grad):
    copied.append(tensors_of(state, grad)[0].data_ptr() != grad.data_ptr())
    return tensors_of(state, grad)


handle.pad, upstream._get_reduce_scatter_tensors = mini_pad, upstream_tensors
for width in (4, 3):  # 16 elements over 2 ranks, then 9
    layer = torch.nn.Linear(width, width, bias=False)
    mini.fully_shard_flat(layer, dist.group.WORLD, modules=[""])
    wrapped = torch.nn.Linear(width, width, bias=False)
    wrapped = FullyShardedDataParallel(wrapped, device_id=torch.device("cpu"))
    for model in layer, wrapped:
        model(torch.ones(1, width)).sum().backward()
if dist.get_rank() == 0:
    print(f"mini = {json.dumps(copied[0::2])}\ntorch = {json.dumps(copied[1::2])}")
