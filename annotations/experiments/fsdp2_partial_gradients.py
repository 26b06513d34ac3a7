"""What HSDP's kept reduction becomes when microbatches use other parameters."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

RANKS = 2


class Either(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Parameter(torch.ones(4))
        self.second = torch.nn.Parameter(torch.ones(4))

    def forward(self, name, x):
        return (getattr(self, name) * x).sum()


def kept(mesh, *, zeros):
    model = fully_shard(Either(), mesh=mesh)
    model.set_reduce_scatter_unused_params(zeros)
    for name, slope, last in (("first", 2.0, False), ("second", 5.0, True)):
        model.set_requires_all_reduce(last)
        model.set_is_last_backward(last)
        model(name, torch.full((4,), slope, requires_grad=True)).backward()
    grads = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {n: None if g is None else g.to_local()[0].item() for n, g in grads.items()}


dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("replicate", "shard"))
for more, zeros in (("", False), ("_with_zeros", True)):
    for name, grad in kept(mesh, zeros=zeros).items():
        if dist.get_rank() == 0:
            print(f"{name}{more} =", json.dumps(grad))
dist.destroy_process_group()
