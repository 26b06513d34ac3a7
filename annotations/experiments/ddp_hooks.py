"""Which comm hooks DDP takes, and what a hook that does not divide does."""

import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2


def summing(state, bucket):
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def misnamed(state, data):
    return summing(state, data)


def refusal(hook):
    try:
        model.register_comm_hook(None, hook)
    except (KeyError, RuntimeError) as error:
        return f"{type(error).__name__}: {str(error)[:40]}"
    return None


dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
model(torch.ones(1, 1)).backward()
averaged = model.module.weight.grad.item()
late = [refusal(misnamed), refusal(summing), refusal(summing)]
model.zero_grad()
model(torch.ones(1, 1)).backward()
if dist.get_rank() == 0:
    print(f"averaged = {averaged}\nsummed = {model.module.weight.grad.item()}")
    for name, answer in zip(("misnamed", "late", "second"), late, strict=True):
        print(name, "=", json.dumps(answer))
dist.destroy_process_group()
