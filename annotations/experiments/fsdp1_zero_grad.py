"""What is left of a whole flat gradient after zero_grad() and the next forward."""

import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())


def elements_left(use_orig_params):
    options = {"use_orig_params": use_orig_params, "device_id": torch.device("cpu")}
    model, left = FSDP(torch.nn.Linear(16, 16, bias=False), **options), []
    with model.no_sync():
        model(torch.ones(1, 16)).sum().backward()
        for act in (model.zero_grad, lambda: model(torch.ones(1, 16))):
            act()
            grad = model._handle.flat_param.grad
            left.append(0 if grad is None else grad.numel())
    return left


print("flat =", json.dumps(elements_left(False)))
print("orig =", json.dumps(elements_left(True)))
