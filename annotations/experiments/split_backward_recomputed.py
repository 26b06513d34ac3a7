"""Runs of a checkpointed block in a whole and a split backward, and what raises."""

import json

import torch
from torch._functorch.aot_autograd import aot_module
from torch._functorch.compilers import nop
from torch.distributed.pipelining import _backward as pp
from torch.utils.checkpoint import checkpoint

layers = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(3)))
ran, compiled = [], aot_module(layers, nop)
layers.register_forward_pre_hook(lambda *_: ran.append(1))


def again(call, split):
    """How often the block runs in backward, or that this raises."""
    x = torch.randn(4, 8, requires_grad=True)
    loss = torch.relu(call(x)).sum()
    ran.clear()
    try:
        if split:
            _, groups = pp.stage_backward_input([loss], None, [x], layers.parameters())
            pp.stage_backward_weight(layers.parameters(), groups)
        else:
            pp.stage_backward(loss, None, [x])
    except RuntimeError:
        return "raises"
    return len(ran)


for name, call in {
    "checkpoint": lambda x: checkpoint(layers, x, use_reentrant=False),
    "reentrant": lambda x: checkpoint(layers, x, use_reentrant=True),
    "compiled": compiled,
}.items():
    print(name, "=", json.dumps([again(call, False), again(call, True)]))
