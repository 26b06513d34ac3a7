"""What the styles of sequence parallelism make of a layout that was left out."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor import parallel as tp

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
x = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0))


def show(name, **options):
    """Print the output's size, and whether it is the right one, or repeats that."""
    torch.manual_seed(0)
    linear = [torch.nn.Linear(4, 4) for _ in range(3)]
    model = torch.nn.Sequential(*linear[:2], torch.nn.LayerNorm(4), linear[2])
    right, row = model(x), tp.RowwiseParallel(**options)
    last = tp.ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())
    plan = {"0": tp.ColwiseParallel(), "1": row, "2": tp.SequenceParallel(), "3": last}
    output = tp.parallelize_module(model, mesh, plan)(x)
    same = torch.allclose(output, right.repeat(1, output.size(1) // 4, 1), atol=1e-5)
    if dist.get_rank() == 0:
        print(name, "=", json.dumps([*output.shape, same]))
    return output


show("asked", output_layouts=Shard(1))
try:
    summed = list((x + show("left")).shape)
except RuntimeError:
    summed = "raises"
show("kept", use_local_output=False)
print("left_with_residual =", json.dumps(summed)) if dist.get_rank() == 0 else None
dist.destroy_process_group()
