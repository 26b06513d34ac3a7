"""What two ranks do whose gradients differ, each with torch's GradScaler."""

import json

import torch
import torch.distributed as dist

RANKS = 2
dist.init_process_group("gloo")
param = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([param], 0.5)
scaler = torch.amp.GradScaler("cpu")
factor = float("inf") if dist.get_rank() else 1.0
scaler.scale((param * factor).sum()).backward()
scaler.step(optimizer)
scaler.update()
found = [None, None]
dist.all_gather_object(found, (scaler.get_scale(), param.item() != 1.0))
if dist.get_rank() == 0:
    print("scales =", json.dumps([scale for scale, _ in found]))
    print("updated =", json.dumps([updated for _, updated in found]))
dist.destroy_process_group()
