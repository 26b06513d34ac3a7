"""What a rank hands over after four microbatches, and its gradient, on one stage."""

import torch
import torch.distributed as dist
from torch.distributed._composable.replicate_with_fsdp import replicate
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

RANKS = 2
dist.init_process_group("gloo")
alone = [dist.new_group([rank]) for rank in range(2)][dist.get_rank()]
mesh, cpu = init_device_mesh("cpu", (2,)), torch.device("cpu")


class Sent(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.__name__.startswith("allreduce_"):
            sent.append(args[0][0].item())
        return func(*args, **(kwargs or {}))


def show(name, wrap, steps=1, **options):
    sent.clear()
    module = wrap(torch.nn.Linear(1, 1, bias=False), **options)
    stage = PipelineStage(module, 0, 1, cpu, group=alone)
    schedule = Schedule1F1B(stage, 4, lambda y, target: y.mean())
    for _ in range(steps):
        with Sent():
            schedule.step(torch.ones(4, 1), target=torch.zeros(4, 1))
    grad = next(stage.submod.parameters()).grad.sum().item()
    print(f"{name} = {[*sent, grad]}") if dist.get_rank() == 0 else None


sent = []
show("not_zeroed", replicate, steps=2, mesh=mesh)
show("ddp", DistributedDataParallel)
