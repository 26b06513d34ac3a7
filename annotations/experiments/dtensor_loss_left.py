"""What a loss meets after an error inside of `loss_parallel`, on two ranks."""

import contextlib
import json

import torch
import torch.distributed as dist
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import loss_parallel

RANKS = 2
dist.init_process_group("gloo")
mesh = dist.init_device_mesh("cpu", (2,))
logits, target = torch.randn(4, 8), distribute_tensor(torch.arange(4), mesh)
with contextlib.suppress(KeyError), loss_parallel():
    raise KeyError


def run(*placements):
    shared = distribute_tensor(logits, mesh, placements or None)
    with CommDebugMode() as forward:
        torch.nn.functional.cross_entropy(shared, target)
    return forward.get_total_counts()


answers = {"cut": run(Shard(1))}
try:
    run()
except ValueError as error:
    answers["uncut"] = str(error).partition(",")[0]
with loss_parallel():
    run(Shard(1))
answers["uncut_after_another"] = run()
if dist.get_rank() == 0:
    print("\n".join(f"{name} = {json.dumps(a)}" for name, a in answers.items()))
dist.destroy_process_group()
