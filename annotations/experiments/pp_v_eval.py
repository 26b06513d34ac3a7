"""What two ranks get of a step and of an evaluation of one microbatch, by schedule."""

import json

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules

RANKS = 2

dist.init_process_group("gloo")
rank, x = dist.get_rank(), torch.ones(4, 4)


def run(schedule, mine, method):
    """Return both ranks' ends: the rows that came back, or the error."""
    stages = [PipelineStage(torch.nn.Linear(4, 4), i, 4, x.device) for i in mine]
    call = getattr(schedule(stages, 1, torch.nn.functional.mse_loss), method)
    try:
        whole = call(*[x][rank:], target=x)
        end = "nothing" if whole is None else f"{len(whole)} rows"
    except AssertionError as error:
        end = str(error)
    dist.all_gather_object(found := [None, None], end)
    return found


v, looped = ((0, 3), (1, 2))[rank], ((0, 2), (1, 3))[rank]
for name, schedule, mine, method in (
    ("zbv_step", schedules.ScheduleZBVZeroBubble, v, "step"),
    ("zbv_eval", schedules.ScheduleZBVZeroBubble, v, "eval"),
    ("interleaved_eval", schedules.ScheduleInterleaved1F1B, looped, "eval"),
):
    figure = run(schedule, mine, method)
    print(name, "=", json.dumps(figure)) if rank == 0 else None
