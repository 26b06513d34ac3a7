"""The norm that clipping returns for gradients that are DTensors on two ranks."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode

RANKS = 2
dist.init_process_group("gloo")
mesh, other = (init_device_mesh("cpu", (2,), mesh_dim_names=(n,)) for n in "dt")
loose = torch.nn.Parameter(torch.zeros(2))
loose.grad = torch.ones(2)


def parameter(mesh, value, placement):
    weight = torch.nn.Parameter(distribute_tensor(torch.zeros(2), mesh, [placement]))
    weight.grad = distribute_tensor(torch.tensor([0.0, value]), mesh, [placement])
    return weight


def attempt(*weights, norm_type=2.0):
    try:
        with CommDebugMode() as comm:
            norm = torch.nn.utils.clip_grad_norm_(weights, 99.0, norm_type)
        counts = {str(op).split(".")[-1]: n for op, n in comm.get_comm_counts().items()}
        return [str(norm.placements[0]), norm.item(), counts]
    except RuntimeError as error:
        return "mixed torch.Tensor" if "mixed" in str(error) else str(error)[:50]


kinds = (4.0, Shard(0)), (12.0, Shard(0)), (3.0, Replicate())
each = [parameter(mesh, *kind) for kind in kinds]
answers = {"together": attempt(*each), "with_a_plain_one": attempt(each[0], loose)}
answers["maximum"] = attempt(*each, norm_type=torch.inf)
answers["two_meshes"] = attempt(each[0], parameter(other, 4.0, Shard(0)))
if dist.get_rank() == 0:
    print("\n".join(f"{name} = {json.dumps(a)}" for name, a in answers.items()))
