"""Whose gradient torch's checkpoint gives if a second run saves one more in front."""

import json

import torch
from torch.utils.checkpoint import checkpoint

RANKS = 1
runs = [0]


def unlike(x):
    runs[0] += 1
    return (x.exp() if runs[0] == 2 else x).sin().cos()


def gradient(runs_before, wrap):
    runs[0], x = runs_before, torch.ones(4, requires_grad=True)
    return torch.autograd.grad(wrap(x).sum(), x)[0]


got = gradient(0, lambda x: checkpoint(unlike, x, use_reentrant=False))
own = {run: gradient(run - 1, unlike) for run in (1, 2)}
same = [run for run in own if torch.equal(got, own[run])]
print("is_that_of_runs =", json.dumps(same))
