"""What torch keeps and sends where a column layer is given shards of a sequence."""

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.distributed.tensor import Shard, init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel
from torch.distributed.tensor.parallel import parallelize_module as parallelize

RANKS = 2

dist.init_process_group("gloo")
rank, mesh = dist.get_rank(), init_device_mesh("cpu", (2,))
model = nn.Sequential(nn.Linear(4, 16, bias=False), nn.Linear(16, 4, bias=False))
sequence = Shard(0)
plan = {
    "0": ColwiseParallel(input_layouts=sequence),
    "1": RowwiseParallel(output_layouts=sequence),
}
model = parallelize(model, mesh, plan)
x, kept = torch.randn(16, 4, requires_grad=True), {}  # 16 of 32 tokens


def keep(tensor):
    local = tensor._local_tensor if hasattr(tensor, "_local_tensor") else tensor
    if local.shape[-1] == 4 and local.shape[0] > 8:
        kept[local.data_ptr()] = local.shape[0]
    return tensor


with CommDebugMode() as counted, saved_tensors_hooks(keep, lambda tensor: tensor):
    y = model(x)
with CommDebugMode() as counted_backward:
    y.sum().backward()
if rank == 0:
    print("tokens_kept =", sorted(kept.values()))
    for name, of in (("forward", counted), ("backward", counted_backward)):
        print(f"{name} =", sum(of.get_comm_counts().values()))
