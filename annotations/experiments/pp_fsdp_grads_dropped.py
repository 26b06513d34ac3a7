"""The gradient's sum behind each run of a pipeline of one stage, FSDP's and plain."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("pp", "dp"))
cpu, x = torch.device("cpu"), torch.ones(4, 4)


def show(name, wraps):
    """Print it, and whether an optimizer changes the weight; nothing is zeroed."""
    module = torch.nn.Linear(4, 4)
    if wraps:
        fully_shard(module, mesh=mesh["dp"])
    stage = PipelineStage(module, 0, 1, cpu, group=mesh["pp"].get_group())
    schedule = Schedule1F1B(stage, 1, lambda output, target: output.sum())
    step, test, sums, changes = schedule.step, schedule.eval, [], []
    for run in (step, step, test, test, step, step):
        run(x, target=x)
        grad = module.weight.grad
        sums.append(None if grad is None else grad.norm(1).item())
        old = module.weight.detach().clone()
        torch.optim.SGD(module.parameters(), lr=1.0).step()
        changes.append((old - module.weight).norm(1).item() > 0)
    print(f"{name} = {json.dumps(sums)}\n{name}_changes = {json.dumps(changes)}")


show("fsdp", wraps=True)
show("plain", wraps=False)
