"""Floating-point operations of a linear layer for each parameter and token."""

import json

import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

RANKS = 1
TOKENS = 16

layer = torch.nn.Linear(32, 32, bias=False)
x = torch.ones(TOKENS, 32, requires_grad=True)


def counted(call):
    with FlopCounterMode(display=False) as counter:
        result = call()
    return counter.get_total_flops() // (TOKENS * layer.weight.numel()), result


forward, y = counted(lambda: layer(x))
backward, _ = counted(y.sum().backward)
again = checkpoint(layer, x, use_reentrant=True).sum()
repeated, _ = counted(again.backward)
kept = {"forward": forward, "backward": backward, "total": forward + backward}
print("kept =", json.dumps(kept))
print("recomputed =", forward + repeated)
