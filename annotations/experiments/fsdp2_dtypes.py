"""In which dtype FSDP2 reduces the gradients of a bf16 forward, and what it gets."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
seen: list[float] = []


def reduced(reduce_dtype):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce_dtype)
    model = fully_shard(torch.nn.Linear(4, 4), mesh=mesh, mp_policy=policy)
    sent = []
    model.register_forward_pre_hook(lambda _, args: seen.append(args[0][0, 0].item()))
    reduce_scatter = dist.reduce_scatter_single

    def noting(**kwargs):
        sent.append(str(kwargs["input"].dtype))
        return reduce_scatter(**kwargs)

    dist.reduce_scatter_single = noting
    model(torch.full((1, 4), 257.0)).sum().backward()
    dist.reduce_scatter_single = reduce_scatter
    return [str(model.weight.dtype), *sent, str(model.weight.grad.dtype)]


unset, fp32 = reduced(None), reduced(torch.float32)
if dist.get_rank() == 0:
    print("unset =", json.dumps(unset), "\nfp32 =", json.dumps(fp32))
    print("position =", seen[0])
dist.destroy_process_group()
