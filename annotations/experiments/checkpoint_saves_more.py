"""What torch's checkpoint says of a second run that saves more, or fewer, tensors."""

import json

import torch
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

RANKS = 1
runs = [0]


def unlike(x, more_in):
    runs[0] += 1
    x = x.sin()
    return x.exp().exp() if runs[0] == more_in else x


def attempt(more_in, stops_early):
    runs[0] = 0
    x = torch.ones(4, requires_grad=True)
    with set_checkpoint_early_stop(stops_early):
        output = checkpoint(unlike, x, more_in, use_reentrant=False)
    try:
        output.sum().backward()
    except RuntimeError as error:
        return type(error).__name__
    return torch.equal(x.grad, x.cos())


print("fewer_in_the_second =", json.dumps(attempt(1, True)))
print("more_in_the_second =", json.dumps(attempt(2, True)))
print("more_without_early_stop =", json.dumps(attempt(2, False)))
