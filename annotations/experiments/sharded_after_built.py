"""What a process holds of a model that FSDP2 shards, built at once or on meta."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))


def held(device):
    """Return the bytes of memory before sharding, after it, and with shards to fill."""
    with torch.device(device):
        model = torch.nn.Linear(64, 64, bias=False)
    before = own(model.weight)
    fully_shard(model, mesh=mesh)
    after = own(model.weight.to_local())
    model.to_empty(device="cpu")
    return [before, after, own(model.weight.to_local())]


def own(tensor):
    return 0 if tensor.is_meta else tensor.untyped_storage().nbytes()


found = {device: held(device) for device in ("cpu", "meta")}
if dist.get_rank() == 0:
    print(f"held = {json.dumps(found)}")
dist.destroy_process_group()
