"""What PowerSGDState.iter counts under accumulation, and what a bucket sends."""

import json
import logging

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(64, 64))
state = powersgd.PowerSGDState(None, start_powerSGD_iter=2)
model.register_comm_hook(state, powersgd.powerSGD_hook)
sent = []
all_reduce = dist.all_reduce


def counted(tensor, *args, **kwargs):
    sent[-1].append(tensor.numel())
    return all_reduce(tensor, *args, **kwargs)


dist.all_reduce = counted
backwards = 0
for _ in range(4):
    sent.append([])
    with model.no_sync():
        for _ in range(4):
            model(torch.randn(8, 64)).sum().backward()
    model(torch.randn(8, 64)).sum().backward()
    backwards += 5
if dist.get_rank() == 0:
    print("backwards =", backwards, "\niter =", state.iter)
    print("sent_before =", json.dumps(sent[1]), "\nsent_after =", json.dumps(sent[-1]))
    shown = powersgd.logger.isEnabledFor(logging.INFO)
    print("info_is_shown =", json.dumps(shown))
    print("error_elements =", state.error_dict[0].numel())
dist.destroy_process_group()
