"""A save over an older one that one rank cannot finish, and a bit that turns."""

from contextlib import suppress
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.tensor import DTensor, Shard

RANKS = 2


class FullDisk(dcp.FileSystemWriter):
    def write_data(self, plan, planner):
        raise OSError


def rows(value):
    return {"rows": DTensor.from_local(torch.full((1, 64), value), mesh, [Shard(0)])}


def show(name):
    dcp.load(state := rows(0.0), checkpoint_id=folder)
    found = state["rows"].full_tensor().unique().tolist()
    print(f"{name} = {found}\n" if dist.get_rank() == 0 else "", end="")


dist.init_process_group("gloo")
mesh, folder = dist.init_device_mesh("cpu", (RANKS,)), Path.cwd() / "checkpoint"
dcp.save(rows(1.0), checkpoint_id=folder)
writer = FullDisk if dist.get_rank() else dcp.FileSystemWriter
with suppress(dcp.api.CheckpointException):
    dcp.save(rows(2.0), storage_writer=writer(folder))
show("after")
if dist.get_rank() == 0:
    file, two = folder / "__0_0.distcp", torch.full((64,), 2.0).numpy().tobytes()
    file.write_bytes(file.read_bytes().replace(two, two[:3] + b"A" + two[4:]))
show("turned")
dist.destroy_process_group()
