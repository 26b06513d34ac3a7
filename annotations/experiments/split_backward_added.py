"""What two added weights get over four microbatches, on four stages of two ranks."""

import json

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining import schedules as upstream

RANKS = 2
dist.init_process_group("gloo")
rank = dist.get_rank()


class Added(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Parameter(torch.ones(4))
        self.two = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x + (self.one + self.two)


for name, schedule in (
    ("zbv", upstream.ScheduleZBVZeroBubble),
    ("dual_pipe_v", upstream.ScheduleDualPipeV),
):
    mine = [PipelineStage(Added(), i, 4, torch.device("cpu")) for i in (rank, 3 - rank)]
    options = {"loss_fn": lambda out, ones: (out * ones).sum(), "scale_grads": False}
    ones, inputs = torch.ones(4, 4), [torch.ones(4, 4)][rank:]
    given = {} if rank else {"target": ones}
    schedule(mine, 4, **options).step(*inputs, **given)
    found = [None, None]
    dist.all_gather_object(found, [s.submod.two.grad.max().item() for s in mine])
    if rank == 0:
        (first, last), middle = found
        print(f"{name} =", json.dumps([first, *middle, last]))
dist.destroy_process_group()
