"""Collectives of a cross entropy over classes that two ranks share, and its traps."""

import contextlib
import json

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import loss_parallel

RANKS = 2
dist.init_process_group("gloo")
mesh, entropy = dist.init_device_mesh("cpu", (2,)), torch.nn.functional.cross_entropy
logits = torch.randn(4, 8, generator=torch.manual_seed(0), requires_grad=True)
target = torch.tensor([0, 5, 7, 2])
entropy(logits, target).backward()


def run(around, target=target):
    shared = distribute_tensor(logits.detach(), mesh, [Shard(1)]).requires_grad_()
    with CommDebugMode() as forward, loss_parallel():
        loss = entropy(shared, target)
    with CommDebugMode() as backward, around():
        loss.backward()
    torch.testing.assert_close(shared.grad.full_tensor(), logits.grad)
    names = [str(op).split(".")[-1] for op in backward.get_comm_counts()]
    return [forward.get_total_counts(), backward.get_total_counts(), *names]


answers = {"inside": run(loss_parallel), "outside": "RuntimeError"}
answers["with_dtensor"] = run(contextlib.nullcontext, distribute_tensor(target, mesh))
with contextlib.suppress(RuntimeError):
    answers["outside"] = run(contextlib.nullcontext)
with contextlib.suppress(KeyError), loss_parallel():
    raise KeyError
handlers = DTensor._op_dispatcher._custom_op_handlers
answers["handlers_left"] = torch.ops.aten._log_softmax.default in handlers
if dist.get_rank() == 0:
    print("\n".join(f"{name} = {json.dumps(a)}" for name, a in answers.items()))
