"""What the size of an uneven tensor becomes once its shards were plain tensors."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel as Column
from torch.distributed.tensor.parallel import RowwiseParallel as Row
from torch.distributed.tensor.parallel import parallelize_module

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
local = distribute_tensor(torch.ones(5, 1), mesh, [Shard(0)]).to_local()
again = DTensor.from_local(local, mesh, [Shard(0)])
told = DTensor.from_local(local, mesh, [Shard(0)], shape=(5, 1), stride=(1, 1))
x = torch.ones(2, 4)


def run(**options):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Linear(5, 4))
    right = model(x)
    parallelize_module(model, mesh, {"0": Column(**options), "1": Row()})
    try:
        return "right" if torch.allclose(model(x), right) else "wrong"
    except RuntimeError as error:
        return "raises" if "same reduction dim" in str(error) else str(error)


figure = [len(local), len(again), len(told), run(), run(use_local_output=False)]
dist.all_gather_object(found := [None, None], figure)
if dist.get_rank() == 0:
    names = "rows", "inferred", "told", "styles", "kept_dtensor"
    for name, values in zip(names, zip(*found, strict=True), strict=True):
        print(name, "=", json.dumps(values))
dist.destroy_process_group()
