"""Activations that autograd keeps, and bytes of Adam's state, in a first step."""

import json
import weakref

import torch
from torch.autograd.graph import saved_tensors_hooks

RANKS = 1

layers = [each for _ in range(4) for each in (torch.nn.Linear(16, 16), torch.nn.Tanh())]
model = torch.nn.Sequential(*layers)
optimizer, kept = torch.optim.Adam(model.parameters()), []


def keep(tensor):
    copy = tensor.detach().clone()
    kept.extend([] if tensor.ndim != 2 or tensor.shape[0] != 8 else [weakref.ref(copy)])
    return copy


def held():
    """Return activations that are still alive, and bytes of Adam's averages."""
    states = [t for s in optimizer.state.values() for n, t in s.items() if n != "step"]
    alive = sum(each() is not None for each in kept)
    return json.dumps({"activations": alive, "averages": sum(t.nbytes for t in states)})


with saved_tensors_hooks(keep, lambda tensor: tensor):
    loss = model(torch.ones(8, 16)).sum()
print("after_forward =", held())
loss.backward()
print("after_backward =", held())
optimizer.step()
print("after_the_step =", held())
print("weights =", sum(p.nbytes for p in model.parameters()))
