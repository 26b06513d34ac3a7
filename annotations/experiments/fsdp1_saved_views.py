"""What stands behind the weight that a unit of FSDP1 computed with in forward."""

import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel

RANKS = 2


def unit(*modules):
    whole = torch.nn.Sequential(*modules)
    return FullyShardedDataParallel(whole, device_id=torch.device("cpu"))


def keep(linear, inputs, output):
    seen["weight"] = linear.weight
    seen["storage"] = linear.weight.untyped_storage()._cdata


def behind():
    storage = seen["weight"].untyped_storage()
    return [storage.size(), storage._cdata == seen["storage"]]


def look_in_backward(unit, inputs, output):
    output.register_hook(lambda gradient: seen.update(backward=behind()))


dist.init_process_group("gloo")
linear, seen = torch.nn.Linear(4, 4, bias=False), {}
linear.register_forward_hook(keep)
inner = unit(linear)
inner.register_forward_hook(look_in_backward)
loss = unit(inner, torch.nn.Linear(4, 1))(torch.ones(2, 4)).sum()
seen["forward"] = behind()
loss.backward()
if dist.get_rank() == 0:
    print("\n".join(f"{at} = {json.dumps(seen[at])}" for at in ("forward", "backward")))
