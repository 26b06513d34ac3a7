"""Which weights get a gradient in the steps behind a backward of FSDP2 that raised."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())


def fail(grad):
    raise MemoryError


def show(name, layer_behind, needs_gradient=False):
    """Print one list a step; before them backward raised in front of a layer."""
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(4)))
    for layer in (*model[:3], model):
        fully_shard(layer, mesh=init_device_mesh("cpu", (2,)))
    weights, steps = [layer.weight for layer in model], []
    for step in range(4):
        hook = model[layer_behind].register_forward_hook(
            lambda layer, args, out: out.register_hook(fail) and None
        )
        step and hook.remove()
        try:
            model(torch.ones(1, 4, requires_grad=needs_gradient)).sum().backward()
            steps.append([weight.grad is not None for weight in weights])
        except MemoryError:
            hook.remove()
        model.zero_grad()
    print(name, "=", json.dumps(steps))


for layer in 1, 2, 3:
    show(f"behind_layer_{layer}", layer)
show("behind_layer_1_input_with_gradient", 1, needs_gradient=True)
