"""Gathers of one step of a pipeline's rank over FSDP2, by the microbatches of it."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups
from torch.distributed.pipelining import PipelineStage, schedules
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("pp", "dp"))
foreach_all_gather, gathers = groups.foreach_all_gather, []
groups.foreach_all_gather = lambda *a: gathers.append(1) or foreach_all_gather(*a)


def make_stage(index, reshard_after_forward):
    layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    for layer in layers:
        fully_shard(layer, mesh=mesh["dp"], reshard_after_forward=reshard_after_forward)
    fully_shard(layers, mesh=mesh["dp"])
    return PipelineStage(
        layers, index, 2, torch.device("cpu"), group=mesh["pp"].get_group()
    )


def gathers_of_a_step(microbatches, reshard_after_forward):
    stages = [make_stage(index, reshard_after_forward) for index in range(2)]
    loss = torch.nn.MSELoss()
    schedule = schedules.ScheduleInterleaved1F1B(stages, microbatches, loss)
    for _ in range(2):
        gathers.clear()
        schedule.step(torch.ones(8, 4), target=torch.zeros(8, 4))
    return len(gathers)


for name, reshard in (("resharded", True), ("kept", False)):
    print(name, "=", json.dumps([gathers_of_a_step(m, reshard) for m in (2, 4, 8)]))
