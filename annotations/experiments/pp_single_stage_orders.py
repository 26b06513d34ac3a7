"""The order in which two real stages run five microbatches, and what they hold."""

import json

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

RANKS = 2

dist.init_process_group("gloo")
rank = dist.get_rank()


def run(kind):
    """Return the order, the most microbatches held, and the receive buffers kept."""
    stage = PipelineStage(torch.nn.Linear(4, 4), rank, 2, torch.device("cpu"))
    order, forward, backward = [], stage.forward_one_chunk, stage.backward_one_chunk
    stage.forward_one_chunk = lambda *a, **k: order.append("F") or forward(*a, **k)
    stage.backward_one_chunk = lambda *a, **k: order.append("B") or backward(*a, **k)
    schedule = kind(stage, 5, loss_fn=torch.nn.functional.mse_loss)
    x = torch.ones(10, 4)
    schedule.step(x) if rank == 0 else schedule.step(target=x)
    held = [order[:i].count("F") - order[:i].count("B") for i in range(11)]
    infos = [*stage.args_recv_info.values(), *stage.grad_recv_info.values()]
    buffers = [r.buffer.data_ptr() for info in infos for r in info if not r.is_root_arg]
    return ["".join(order), max(held), len(set(buffers))]


for name, kind in (("gpipe", ScheduleGPipe), ("one_f_one_b", Schedule1F1B)):
    found = [None, None]
    dist.all_gather_object(found, run(kind))
    if rank == 0:
        orders, held, buffers = zip(*found, strict=True)
        figure = {"orders": orders, "held": held, "buffers": buffers}
        print(name, "=", json.dumps(figure))
dist.destroy_process_group()
