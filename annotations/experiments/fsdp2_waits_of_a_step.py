"""What FSDP2's gather stream is told to wait for in four microbatches of a step."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3)))
for layer in (*model, model):
    fully_shard(layer, mesh=init_device_mesh("cpu", (2,)))
model(torch.ones(1, 4)).sum().backward()
context, told = model._get_fsdp_state()._comm_ctx, []
plain = context.all_gather_stream


class Noting:
    def wait_event(self, event):
        if event == "the optimizer's":
            told.append("event")

    def wait_stream(self, stream):
        if stream is not context.all_gather_copy_in_stream:
            told.append("stream")

    def __getattr__(self, name):
        return getattr(plain, name)


context.all_gather_stream = Noting()
context.all_gather_copy_in_stream.wait_event = lambda event: None
for name in ("unset", "set"):
    told.clear()
    name == "set" and model.set_post_optim_event("the optimizer's")
    for _ in range(4):
        model(torch.ones(1, 4)).sum().backward()
    print(name, "=", json.dumps(told))
