"""Messages that each of four ranks sends in a step, with one chunk, two and three."""

import json

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
SENDS = (schedules.SEND_F, schedules.SEND_B)


def sent(chunks):
    """Return what each rank sends, in messages for one microbatch."""
    stages = [
        PipelineStage(torch.nn.Linear(1, 1), 4 * i, 4 * chunks, torch.device("cpu"))
        for i in range(chunks)
    ]
    schedule = schedules.ScheduleInterleaved1F1B(stages, 8, torch.nn.MSELoss())
    orders = {
        rank: [action for action in order if action is not None]
        for rank, order in schedule.pipeline_order.items()
    }
    lowered = schedules._add_send_recv(orders, lambda stage: stage % 4, 4 * chunks)
    return [
        sum(action.computation_type in SENDS for action in lowered[rank]) // 8
        for rank in range(4)
    ]


print("sent =", json.dumps([sent(chunks) for chunks in (1, 2, 3)]))
