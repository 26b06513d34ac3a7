"""Single gradients of a layer behind a region of the reentrant kind, and before it."""

import json

import torch
from torch.utils.checkpoint import checkpoint

RANKS = 1
x, behind = (torch.ones(4, requires_grad=True) for _ in range(2))


def attempt(of, by_backward):
    loss = (checkpoint(torch.tanh, x, use_reentrant=True) * behind).sum()
    try:
        loss.backward(inputs=[of]) if by_backward else torch.autograd.grad(loss, of)
        return "given"
    except RuntimeError:
        return "refused"


for name, of in (("behind", behind), ("through", x)):
    print(name, "=", json.dumps([attempt(of, False), attempt(of, True)]))
