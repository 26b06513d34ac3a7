"""Products of a hand-written linear layer in a whole backward and in the two halves."""

import json

import torch
from torch.distributed.pipelining._backward import (
    stage_backward,
    stage_backward_input,
    stage_backward_weight,
)


class Linear(torch.autograd.Function):
    """Makes the gradients that were needed when its forward ran."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx, grad):
        (x, weight), needs = ctx.saved_tensors, ctx.needs_input_grad
        made.append(list(needs))
        return grad @ weight if needs[0] else None, grad.T @ x if needs[1] else None


made, weight = [], torch.nn.Parameter(torch.randn(8, 8))
x = torch.randn(4, 8, requires_grad=True)
stage_backward(Linear.apply(x, weight).sum(), None, [x])
print("whole =", json.dumps(made))
made.clear()
loss = [Linear.apply(x, weight).sum()]
_, groups = stage_backward_input(loss, None, [x], iter([weight]))
stage_backward_weight(iter([weight]), groups)
print("split =", json.dumps(made))
