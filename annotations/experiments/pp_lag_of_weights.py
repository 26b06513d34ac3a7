"""When torch's orders end on four ranks, each kind of work one slot, sends free."""

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
stages = [
    PipelineStage(torch.nn.Linear(1, 1), i, 8, torch.device("cpu")) for i in (0, 4)
]


def ends():
    """Return the slot behind the last work of each rank."""
    make = schedules.ScheduleInterleavedZeroBubble
    order = make(stages, 16, torch.nn.MSELoss()).pipeline_order
    left = [[step for step in order[rank] if step] for rank in range(4)]
    time, done = [0] * 4, {end: dict.fromkeys(range(16), 0) for end in ("F-1", "B8")}
    while any(left):
        for rank in range(4):
            stage, kind, batch, _ = left[rank][0] if left[rank] else (0, None, 0, 0)
            forward = kind == schedules.FORWARD
            needs = f"F{stage - 1}" if forward else f"B{stage + 1}"
            if kind and batch in done.get(needs, {}):
                left[rank].pop(0)
                time[rank] = max(time[rank], done[needs][batch]) + 1
                if kind != schedules.BACKWARD_WEIGHT:
                    made = done.setdefault(f"{'FB'[not forward]}{stage}", {})
                    made[batch] = time[rank]
    return time


print(f"lag_r = {ends()}")
real = schedules._get_1f1b_rank_ops
schedules._get_1f1b_rank_ops = lambda *a, **k: real(*a[:8], 0, *a[9:], **k)
print(f"no_lag = {ends()}")
