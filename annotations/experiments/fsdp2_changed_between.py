"""What backward reads after a weight was changed in place behind its forward."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=1, store=FakeStore())
mesh = init_device_mesh("cpu", (1,))


def show(name, reshard_after_forward):
    """Print the gradient of the input, for a weight of ones that became fives."""
    layer = torch.nn.Linear(2, 2, bias=False)
    torch.nn.init.ones_(layer.weight)
    fully_shard(layer, mesh=mesh, reshard_after_forward=reshard_after_forward)
    given = torch.ones(1, 2, requires_grad=True)
    loss = layer(given).sum()
    with torch.no_grad():
        layer.weight.fill_(5.0)
    try:
        loss.backward()
        found = given.grad[0].tolist()
    except RuntimeError as error:
        found = type(error).__name__
    print(f"{name} = {json.dumps(found)}")


show("resharded", True)
show("kept", False)
