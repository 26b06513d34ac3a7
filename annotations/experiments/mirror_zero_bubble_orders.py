"""Torch's zero-bubble and interleaved orders beside the mini's, step by step."""

import json

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules
from torch.testing._internal.distributed.fake_pg import FakeStore

from mini_impls.schedules import get_orders

UPSTREAMS = ["minis"]
KINDS = {"FORWARD": "F", "BACKWARD_INPUT": "B", "BACKWARD_WEIGHT": "W"}
KINDS["FULL_BACKWARD"] = "B"
cpu, layer = torch.device("cpu"), torch.nn.Linear(1, 1)


def upstream(name, ranks, chunks):
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    places = [i * ranks for i in range(chunks)]
    stages = [PipelineStage(layer, i, ranks * chunks, cpu) for i in places]
    schedule = getattr(schedules, name)(stages, 16, torch.nn.MSELoss())
    orders = [[a for a in schedule.pipeline_order[r] if a] for r in range(ranks)]
    dist.destroy_process_group()
    return [
        [(KINDS[a.computation_type.name], a.microbatch_index, a.stage_index) for a in o]
        for o in orders
    ]


def mini(name, ranks, chunks):
    orders = get_orders(name, ranks, 16, chunks)
    return [[(step.kind, step.microbatch_id, step.stage) for step in o] for o in orders]


for ours, theirs, chunks in (("zb-h1", "ZeroBubble", 1), ("interleaved", "1F1B", 2)):
    name = f"ScheduleInterleaved{theirs}"
    same = [mini(ours, p, chunks) == upstream(name, p, chunks) for p in (2, 4, 8)]
    print("zb_h1 =" if chunks == 1 else "interleaved =", json.dumps(same))
