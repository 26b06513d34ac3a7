"""Which stages of four have a gradient after a step whose first stage is frozen."""

import json

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules

RANKS = 2

dist.init_process_group("gloo")
rank = dist.get_rank()


def trained(kind):
    """Return for each stage whether its weight has a gradient."""
    layers = [torch.nn.Linear(4, 4) for _ in range(4)]
    layers[0].requires_grad_(False)
    stages = [
        PipelineStage(layers[i], i, 4, torch.device("cpu")) for i in (rank, rank + 2)
    ]
    schedule = kind(stages, 4, loss_fn=torch.nn.functional.mse_loss)
    x = torch.ones(8, 4)
    schedule.step(x) if rank == 0 else schedule.step(target=x)
    mine = [layers[i].weight.grad is not None for i in (rank, rank + 2)]
    found = [None, None]
    dist.all_gather_object(found, mine)
    return [found[0][0], found[1][0], found[0][1], found[1][1]]


whole = trained(schedules.ScheduleInterleaved1F1B)
split = trained(schedules.ScheduleInterleavedZeroBubble)
if rank == 0:
    print("whole =", json.dumps(whole), "\nsplit =", json.dumps(split))
dist.destroy_process_group()
