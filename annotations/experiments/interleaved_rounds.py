"""Chunk forwards of rank 0 before its first backward, and chunks held, interleaved."""

import json

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
stages = [
    PipelineStage(torch.nn.Linear(1, 1), i, 8, torch.device("cpu")) for i in (0, 4)
]


def held(microbatches):
    """Return what rank 0 runs before its first backward, and the most it holds."""
    schedule = schedules.ScheduleInterleaved1F1B(
        stages, microbatches, torch.nn.MSELoss()
    )
    forward = [
        step.computation_type.name == "FORWARD"
        for step in schedule.pipeline_order[0]
        if step is not None
    ]
    most = max(sum(1 if f else -1 for f in forward[:i]) for i in range(len(forward)))
    return [forward.index(False), most]


for microbatches in (7, 8):
    print(f"of_{microbatches} = {json.dumps(held(microbatches))}")
try:
    held(9)
except ValueError as error:
    print("of_9 =", json.dumps(str(error)))
