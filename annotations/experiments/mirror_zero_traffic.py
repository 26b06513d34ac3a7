"""What a step of the ZeRO minis sends, in models, and when Adam's state appears."""

import json
from functools import partial

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from mini_impls.zero import ZeroStage1
from mini_impls.zero_stage3 import ZeroStage3

UPSTREAMS = ["minis"]
RING = {"all_reduce": 2, "broadcast": 1, "reduce": 1}

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
sent, group = {}, dist.group.WORLD


def noting(name, call, tensor, **kwargs):
    sent[name] += tensor.numel() / 1024
    return call(tensor, **kwargs)


def show(name, kind, **options):
    model = torch.nn.Sequential(*(torch.nn.Linear(16, 16, False) for _ in range(4)))
    zero = kind(model)(model.parameters(), torch.optim.Adam, group, **options)
    sent.update(dict.fromkeys(RING, 0))
    model(torch.ones(1, 16)).sum().backward()
    before, _ = len(zero.optim.state), zero.step()
    ring = sum(RING[name] * models for name, models in sent.items())
    states = [before, len(zero.optim.state)]
    print(name, "=", json.dumps({**sent, "ring": ring, "states": states}))


for name in RING:
    setattr(dist, name, partial(noting, name, getattr(dist, name)))
show("to_everyone", lambda model: ZeroStage1)
show("to_owner", lambda model: ZeroStage1, gradients="reduce")
show("stage_3", lambda model: partial(ZeroStage3, model))
