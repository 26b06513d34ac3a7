"""A backward in two halves from an output that is a view: torch's, and the mini's."""

import json

import torch
from torch import nn
from torch.distributed.pipelining._backward import stage_backward_input as by_torch

from mini_impls.zero_bubble_backward import stage_backward_input as by_mini

RANKS = 1

layer = nn.Linear(8, 8)
weights = list(layer.parameters())


def attempt(side, is_view):
    """Make the input's half; return how that went."""
    x = torch.randn(4, 8, requires_grad=True)
    output = layer(x).view(4, 2, 4) if is_view else layer(x)
    grad = torch.ones_like(output)
    try:
        if side == "torch":
            by_torch([output], [grad], [x], iter(weights))
        else:
            by_mini(output, grad, x, weights)
    except RuntimeError as error:
        return str(error.__cause__ or error).split(".")[0]
    return "made"


for name, is_view in (("whole", False), ("view", True)):
    made = {side: attempt(side, is_view) for side in ("torch", "mini")}
    print(f"{name} =", json.dumps(made))
