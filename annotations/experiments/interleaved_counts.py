"""Chunks that rank 0 of four holds in interleaved 1F1B, by the microbatches."""

import json

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
stages = [
    PipelineStage(torch.nn.Linear(1, 1), i, 8, torch.device("cpu")) for i in (0, 4)
]


def held(microbatches):
    """Return the most chunks that rank 0 holds, or 0 where the schedule is refused."""
    try:
        schedule = ScheduleInterleaved1F1B(stages, microbatches, torch.nn.MSELoss())
    except ValueError:
        return 0
    most = now = 0
    for step in schedule.pipeline_order[0]:
        if step is not None:
            now += 1 if step.computation_type.name == "FORWARD" else -1
            most = max(most, now)
    return most


counts = {m: held(m) for m in range(4, 25)}
print("of_4_to_8 =", json.dumps([counts[m] for m in range(4, 9)]))
print("of_15 =", counts[15])
print("refused =", json.dumps([m for m in counts if not counts[m]]))
