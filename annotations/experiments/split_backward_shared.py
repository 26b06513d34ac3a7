"""A backward in two halves, of weights that are added, or used twice: torch, mini."""

import json

import torch
from torch.distributed.pipelining import _backward as upstream
from torch.nn.functional import linear

from mini_impls import zero_bubble_backward as mini

RANKS = 1


def run(side, names):
    """Return the largest gradient of a weight after three microbatches."""
    params = {n: torch.ones(4, 4 if n == "tied" else 1).squeeze(1) for n in names}
    weights = [param.requires_grad_() for param in params.values()]
    for x in torch.ones(3, 1, 4):
        x.requires_grad_()
        if "tied" in params:
            hidden = linear(x, params["tied"], params["one"])
            output = linear(hidden, params["tied"], params["two"])
        else:
            output = x + (params["one"] + params["two"])
        grad = torch.ones_like(output)
        if side == "mini":
            _, groups = mini.stage_backward_input(output, grad, x, weights)
            mini.stage_backward_weight(groups)
            continue
        _, groups = upstream.stage_backward_input([output], [grad], [x], weights)
        try:
            upstream.stage_backward_weight(weights, groups)
        except RuntimeError as error:
            return str(error).partition(" (")[0]
    return float(params["two"].grad.max())


for side in ("torch", "mini"):
    for names in (["one", "two"], ["one", "two", "tied"]):
        print(f"{side}_{'_'.join(names)} =", json.dumps(run(side, names)))
