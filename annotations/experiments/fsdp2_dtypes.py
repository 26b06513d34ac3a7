"""In which dtype FSDP2 reduces the gradients of a bf16 forward, and what it gets."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

RANKS = 2

dist.init_process_group("gloo")
mesh, seen, sums = init_device_mesh("cpu", (2,)), [], []


def reduced(reduce_dtype, dtype=torch.float32):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce_dtype)
    model = fully_shard(torch.nn.Linear(4, 4).to(dtype), mesh=mesh, mp_policy=policy)
    sent = []
    model.register_forward_pre_hook(lambda _, args: seen.append(args[0][0, 0].item()))
    reduce_scatter = dist.reduce_scatter_single

    def noting(**kwargs):
        sent.append(str(kwargs["input"].dtype))
        return reduce_scatter(**kwargs)

    dist.reduce_scatter_single = noting
    model(torch.full((1, 4), 257.0)).sum().backward()
    dist.reduce_scatter_single = reduce_scatter
    model(torch.ones(1, 4)).sum().backward()
    sums.append(model.weight.grad.to_local()[0, 0].item())
    return json.dumps([str(model.weight.dtype), *sent, str(model.weight.grad.dtype)])


unset, fp32 = reduced(None), reduced(torch.float32)
bf16_model = reduced(torch.float32, torch.bfloat16)
if dist.get_rank() == 0:
    print(f"unset = {unset}\nfp32 = {fp32}\nbf16_model = {bf16_model}")
    print(f"position = {seen[0]}\ntwo_microbatches = {sums[1:]}")
dist.destroy_process_group()
