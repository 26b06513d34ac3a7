"""Warm-up, chunks held and lag of torch's interleaved schedules, on four ranks."""

import json

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
stages = [
    PipelineStage(torch.nn.Linear(1, 1), i, 8, torch.device("cpu")) for i in (0, 4)
]


def counts(actions):
    """Return the length of warm-up, the most chunks held, the most W that lag."""
    kinds = [action.computation_type.name for action in actions if action is not None]
    held = lag = most_held = most_lag = 0
    for kind in kinds:
        held += (kind == "FORWARD") - (kind in ("FULL_BACKWARD", "BACKWARD_WEIGHT"))
        lag += (kind == "BACKWARD_INPUT") - (kind == "BACKWARD_WEIGHT")
        most_held, most_lag = max(most_held, held), max(most_lag, lag)
    warm_up = next(i for i, kind in enumerate(kinds) if kind != "FORWARD") - 1
    return warm_up, most_held, most_lag


for name, kind in (("interleaved", "1F1B"), ("zero_bubble", "ZeroBubble")):
    schedule = getattr(schedules, f"ScheduleInterleaved{kind}")(
        stages, 16, torch.nn.MSELoss()
    )
    per_rank = [counts(schedule.pipeline_order[rank]) for rank in range(4)]
    visits = [step.stage_index for step in schedule.pipeline_order[0] if step]
    print(f"interleaved_visits = {visits[:9]}" * (name == "interleaved"))
    warm_up, held, lag = zip(*per_rank, strict=True)
    print(name, "=", json.dumps({"warm_up": warm_up, "held": held, "lag": lag}))
