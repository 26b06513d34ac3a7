"""Which receive buffers two stages keep over steps, evaluations and steps again."""

import itertools
import json

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

RANKS = 2

dist.init_process_group("gloo")
rank = dist.get_rank()
stage = PipelineStage(torch.nn.Linear(4, 4), rank, 2, torch.device("cpu"))
schedule = Schedule1F1B(stage, 5, loss_fn=torch.nn.functional.mse_loss)
x = torch.ones(10, 4)
step, test, held = schedule.step, schedule.eval, []
for run in (step, step, test, test, step):
    run(x) if rank == 0 else run(target=x)
    # Rank 0 receives gradients, rank 1 inputs. What was there stays alive in the list.
    infos = stage.grad_recv_info if rank == 0 else stage.args_recv_info
    held.append([r.buffer for info in infos.values() for r in info])
fate = []
for before, after in itertools.pairwise(held):
    same = {a is b for a, b in zip(before, after, strict=True)}
    fate.append({frozenset({True}): "kept", frozenset({False}): "new"}[frozenset(same)])
found = [None, None]
dist.all_gather_object(found, fate)
if rank == 0:
    print("gradients =", json.dumps(found[0]))
    print("inputs =", json.dumps(found[1]))
dist.destroy_process_group()
