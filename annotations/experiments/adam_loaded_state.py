"""Bytes of Adam's moments after a loaded state dict and before any step."""

import torch

RANKS = 1


def moments(optimizer):
    states = optimizer.state.values()
    return sum(t.nbytes for s in states for k, t in s.items() if k != "step")


def built():
    layer = torch.nn.Linear(10, 10, bias=False)
    return layer, torch.optim.Adam(layer.parameters())


layer, stepped = built()
layer(torch.ones(1, 10)).sum().backward()
stepped.step()
_, resumed = built()
print("built =", moments(resumed))
resumed.load_state_dict(stepped.state_dict())
print("loaded =", moments(resumed))
