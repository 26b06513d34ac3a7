"""What a rank of FSDP2 keeps of a gradient while set_requires_gradient_sync is off."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

RANKS = 2
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))


def show(name, reduce_dtype, steps):
    policy = MixedPrecisionPolicy(torch.bfloat16, reduce_dtype)
    model = torch.nn.Linear(16, 16, bias=False)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.set_reshard_after_backward(name != "zeroed_gathered")
    for synchronised in steps:
        model.set_requires_gradient_sync(synchronised)
        model(torch.ones(1, 16)).sum().backward()
    model.zero_grad() if name.startswith("zeroed") else None
    param = model._get_fsdp_state()._fsdp_param_group.fsdp_params[0]
    kept = param._unsharded_param.grad
    kept = param.unsharded_accumulated_grad if kept is None else kept
    shard = param.sharded_param.grad
    figure = [None if kept is None else [kept.numel(), str(kept.dtype)]]
    figure.append(None if shard is None else shard.to_local().numel())
    if dist.get_rank() == 0:
        print(name, "=", json.dumps(figure))


show("off_in_fp32", torch.float32, [False, False])
show("off_in_bf16", None, [False, False])
show("then_on", torch.float32, [False, True])
show("always_on", torch.float32, [True, True])
show("zeroed", None, [False])
show("zeroed_gathered", None, [False])
dist.destroy_process_group()
