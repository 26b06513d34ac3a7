"""An optimizer that is built behind an evaluation: which layers its step changes."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
mesh = init_device_mesh("cpu", (4,))


def show(name, reshard_after_forward, evaluates=True, reshards=False):
    """Print whether a step changes the layer with a group and the root's own."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    for module in (model[0], model):
        fully_shard(module, mesh=mesh, reshard_after_forward=reshard_after_forward)
    if evaluates:
        torch.no_grad()(model)(torch.ones(1, 4))
    for module in (model[0], model) if reshards else ():
        module.reshard()
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 4)).sum().backward()
    old = [layer.weight.to_local().clone() for layer in model]
    optimizer.step()
    new = [layer.weight.to_local() for layer in model]
    changed = [not torch.equal(*pair) for pair in zip(old, new, strict=True)]
    print(name, "=", json.dumps(changed))


show("built_before", False, evaluates=False)
show("default", None)
show("true", True)
show("false", False)
show("two", 2)
show("false_resharded", False, reshards=True)
show("two_resharded", 2, reshards=True)
