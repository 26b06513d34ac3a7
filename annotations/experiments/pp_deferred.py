"""Gradients, and the order of messages from rank 0 to 1, where receives are put off."""

import copy
import json

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules

RANKS = 2

dist.init_process_group("gloo")
rank, ours = dist.get_rank(), "RECV" if dist.get_rank() else "SEND"
model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(4)))
for p in model.parameters():
    dist.broadcast(p.data, 0)
x, parts = torch.arange(32.0).view(8, 4) / 32, copy.deepcopy(model)
loss = torch.nn.MSELoss(reduction="sum")
loss(model(x), x).backward()
mine, right = ((0, 3), (1, 2))[rank], []
given = {} if rank else {"target": x}
for deferred in (False, True):
    parts.zero_grad()
    stages = [PipelineStage(parts[i], i, 4, torch.device("cpu")) for i in mine]
    options = {"scale_grads": False, "defer_pp_recv": deferred}
    step = schedules.ScheduleZBVZeroBubble(stages, 8, loss, **options)
    step.step(*[x][rank:], **given)
    both = [(parts[i].weight.grad, model[i].weight.grad) for i in mine]
    right.append(all(torch.allclose(*pair, rtol=1e-3) for pair in both))
actions = [str(a) for a in step.pipeline_order_with_comms[rank]]
found = [None, None]
messages = [a for a in actions if ours in a][2:5]
dist.all_gather_object(found, [right, messages])
if rank == 0:
    figure = dict(zip(("right", "then"), zip(*found, strict=True), strict=True))
    print("zbv =", json.dumps(figure))
dist.destroy_process_group()
