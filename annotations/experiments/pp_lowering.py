"""Messages and gathers that torch adds to an order of computations."""

import json

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules
from torch.distributed.pipelining.schedules import _Action
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())


def messages(*orders):
    """What each rank sends and receives, in its order, for one stage a rank."""
    given = {r: [_Action.from_str(w) for w in o.split()] for r, o in enumerate(orders)}
    done = schedules._add_send_recv(given, lambda stage: stage, len(orders))
    return [[str(a)[1:] for a in done[r] if "_" in str(a)] for r in sorted(done)]


one, two = messages("0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1")
print("rank_0 =", json.dumps(one), "\nrank_1 =", json.dumps(two))
try:
    messages("0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0")
except AssertionError as error:
    print("crossed =", json.dumps(str(error)))
cpu, gathers = torch.device("cpu"), []
for local, m in ((2, 8), (3, 8), (4, 8), (6, 8), (4, 4)):
    layer, of = torch.nn.Linear(1, 1), 4 * local
    stages = [PipelineStage(layer, 4 * i, of, cpu) for i in range(local)]
    schedule = schedules.ScheduleInterleaved1F1B(stages, m, torch.nn.MSELoss())
    lowered = schedules._add_unshard_reshard(schedule.pipeline_order[0])
    unshards = [a for a in lowered if a.computation_type is schedules.UNSHARD]
    gathers.append(len(unshards) / local)
print("gathers_of_a_stage =", json.dumps(gathers))
