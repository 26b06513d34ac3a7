"""What a pending sum of two ranks becomes under each operation, and what is sent."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate
from torch.distributed.tensor.debug import CommDebugMode

RANKS = 2
dist.init_process_group("gloo")
mesh, rank = init_device_mesh("cpu", (2,)), dist.get_rank()
pending = DTensor.from_local(torch.full((2,), 1.0 + 2 * rank), mesh, [Partial()])
same = DTensor.from_local(torch.ones(2), mesh, [Replicate()])


def show(name, run):
    try:
        with CommDebugMode() as comm:
            result = run()
        answer = [str(result.placements[0]), comm.get_total_counts()]
        answer.append(result.full_tensor().flatten().tolist()[0])
    except (RuntimeError, ValueError) as error:
        answer = type(error).__name__
    if rank == 0:
        print(name, "=", json.dumps(answer))


show("doubled", lambda: pending * 2)
show("both_pending", lambda: pending + pending)
show("plus_one", lambda: pending + 1)
show("plus_a_replica", lambda: pending + same)
show("cloned", pending.clone)
show("mean", pending.mean)
show("turned_contiguous", lambda: pending.expand(3, 2).t().contiguous())
show("one_in_place", lambda: pending.add_(1))
show("squared", lambda: pending * pending)
show("to_a_power", lambda: pending**2)
show("relu", lambda: pending.relu())
