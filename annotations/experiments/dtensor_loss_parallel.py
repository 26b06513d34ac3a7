"""Collectives of a cross entropy over classes that two ranks share, and its traps."""

import contextlib
import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import loss_parallel

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
logits = torch.randn(4, 8, generator=torch.manual_seed(0))
target = torch.tensor([0, 5, 7, 2])


def run(around):
    shared = distribute_tensor(logits, mesh, [Shard(1)]).requires_grad_()
    with CommDebugMode() as forward, loss_parallel():
        loss = torch.nn.functional.cross_entropy(shared, target)
    try:
        with CommDebugMode() as backward, around():
            loss.backward()
    except RuntimeError:
        return "RuntimeError"
    return [forward.get_total_counts(), backward.get_total_counts()]


answers = {"inside": run(loss_parallel), "outside": run(torch.enable_grad)}
with contextlib.suppress(KeyError), loss_parallel():
    raise KeyError
handlers = DTensor._op_dispatcher._custom_op_handlers
answers["handlers_left"] = torch.ops.aten._log_softmax.default in handlers
if dist.get_rank() == 0:
    print("\n".join(f"{name} = {json.dumps(a)}" for name, a in answers.items()))
