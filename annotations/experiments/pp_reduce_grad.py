"""The gradient after a step of four microbatches, and what was sent, on one stage."""

import torch
import torch.distributed as dist
from torch.distributed._composable.replicate_with_fsdp import replicate
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import DTensor

RANKS = 2

dist.init_process_group("gloo")
alone = [dist.new_group([rank]) for rank in range(2)][dist.get_rank()]
mesh, cpu = init_device_mesh("cpu", (2,)), torch.device("cpu")
inputs, plain = torch.full((4, 1), 1.0 + 2 * dist.get_rank()), dist.all_reduce


def watched(tensor, **options):
    sent.append(tensor.flatten().tolist())
    return plain(tensor, **options)


def gradient(wrap):
    layer = torch.nn.Linear(1, 1, bias=False)
    stage = PipelineStage(wrap(layer), 0, 1, cpu, group=alone)
    schedule = Schedule1F1B(stage, 4, lambda y, target: y.mean())
    schedule.step(inputs, target=torch.zeros(4, 1))
    grad = next(stage.submod.parameters()).grad
    return (grad.to_local() if isinstance(grad, DTensor) else grad).item()


sent, dist.all_reduce = [], watched
reduced = gradient(lambda layer: replicate(layer, mesh=mesh))
if dist.get_rank() == 0:
    print(f"replicate = {reduced}\nsent = {sent}")
