"""The mini's Muon beside torch's, over shapes and options, four steps each."""

from itertools import product

import torch

from mini_impls.muon import Muon

RANKS = 1
UPSTREAMS = ["minis"]

compared = unequal = 0
for rows, columns, nesterov in product((1, 4, 9), (1, 4, 9), (True, False)):
    torch.manual_seed(rows + columns)
    ours = torch.nn.Parameter(torch.randn(rows, columns))
    theirs = torch.nn.Parameter(ours.detach().clone())
    pair = [
        kind([p], nesterov=nesterov)
        for kind, p in ((Muon, ours), (torch.optim.Muon, theirs))
    ]
    for _ in range(4):
        ours.grad = torch.randn(rows, columns)
        theirs.grad = ours.grad.clone()
        for optimizer in pair:
            optimizer.step()
        compared += 1
        unequal += not torch.equal(ours, theirs)
print("compared =", compared)
print("unequal =", unequal)
