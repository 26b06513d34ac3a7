"""What two stages make of seven rows in four microbatches, in a test and in a step."""

import json
import warnings

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

RANKS = 2

warnings.simplefilter("ignore")  # mse_loss warns of a target of another size
dist.init_process_group("gloo")
rank, rows = dist.get_rank(), torch.arange(1.0, 8.0)[:, None]


class Kept(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.seen = torch.nn.Parameter(torch.ones(1)), []

    def forward(self, x):
        self.seen.append(len(x))
        return self.weight * x


def run(stage, method):
    step = getattr(ScheduleGPipe(stage, 4, torch.nn.functional.mse_loss), method)
    try:
        whole = step(rows) if rank == 0 else step(target=rows)
        end = "nothing" if whole is None else f"{len(whole)} rows"
    except RuntimeError:
        end = "raises"
    dist.all_gather_object(found := [None, None], [stage.submod.seen[-4:], end])
    return found


for method in ("eval", "step"):
    figure = run(PipelineStage(Kept(), rank, 2, torch.device("cpu")), method)
    print(method, "=", json.dumps(figure)) if rank == 0 else None
