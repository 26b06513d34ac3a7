"""What column-parallel and row-parallel layers send, and what they hand back."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))


def show(name, style, columns):
    layer = parallelize_module(torch.nn.Linear(4, 4), mesh, style)
    x = torch.ones(2, 2, columns, requires_grad=True)
    with CommDebugMode() as forward:
        y = layer(x)
    with CommDebugMode() as backward:
        y.sum().backward()
    figure = {}
    for half, comm in (("forward", forward), ("backward", backward)):
        figure[half] = [str(op).split(".")[-1] for op in comm.get_comm_counts()]
    figure["output"] = [type(y).__name__, *y.shape]
    if dist.get_rank() == 0:
        print(name, "=", json.dumps(figure))


show("column", ColwiseParallel(), 4)
show("row", RowwiseParallel(), 2)
show("row_to_sequence", RowwiseParallel(output_layouts=Shard(1)), 2)
dist.destroy_process_group()
