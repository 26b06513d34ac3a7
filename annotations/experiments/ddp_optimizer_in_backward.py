"""An optimizer in backward under DDP: what it stepped by, and a hook beside it."""

import json

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.optim import _apply_optimizer_in_backward
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
dist.init_process_group("gloo")


def wrapped(hook=None):
    linear = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(linear.weight)
    _apply_optimizer_in_backward(torch.optim.SGD, linear.parameters(), {"lr": 1.0})
    model = DistributedDataParallel(linear)
    if hook:
        model.register_comm_hook(None, hook)
    return model


def train(model, name):
    try:
        model(torch.full((1, 1), 1.0 + 2 * dist.get_rank())).backward()
        weight = model.module.weight
        report[name] = {"weight": weight.item(), "gradient": weight.grad is not None}
    except RuntimeError as error:
        report[name] = str(error).splitlines()[0][:60]
        report["stepped"] = report.get("stepped", model.module.weight.item())


report = {}
train(wrapped(), "alone")
train(wrapped(default_hooks.allreduce_hook), "with_a_hook")
if dist.get_rank() == 0:
    print("\n".join(f"{name} = {json.dumps(value)}" for name, value in report.items()))
dist.destroy_process_group()
