"""Training with FSDP2 after a first forward in inference mode, and under no_grad."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh = init_device_mesh("cpu", (2,))


def trained_after(mode):
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(2)))
    for module in (*model, model):
        fully_shard(module, mesh=mesh)
    try:
        with mode():
            model(torch.ones(1, 4))
        model(torch.ones(1, 4)).sum().backward()
    except RuntimeError as error:
        return str(error)[:34].strip()
    return "trained"


for mode in (torch.no_grad, torch.inference_mode):
    print(mode.__name__, "=", json.dumps(trained_after(mode)))
