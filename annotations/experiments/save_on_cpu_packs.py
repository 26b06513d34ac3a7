"""What save_on_cpu packs of an expanded tensor, and what becomes of a check."""

import json

import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks

RANKS = 1

hooks, sizes = save_on_cpu(pin_memory=True), []


def pack(tensor):
    packed = hooks.pack_hook(tensor)
    sizes.append([t.untyped_storage().nbytes() for t in (tensor, packed[1])])
    return packed


scores = torch.ones(32, 1024, 1024, requires_grad=True)
with saved_tensors_hooks(pack, hooks.unpack_hook):
    scores * torch.ones(1, 1024, 1024).expand(32, 1024, 1024)
print("expanded =", json.dumps([nbytes // 2**20 for nbytes in sizes[0]]))


def gradient(context):
    """Return the gradient of h * h by x, h = 2 x, where h is changed after its use."""
    hidden = 2 * (x := torch.ones(1, requires_grad=True))
    with context:
        square = hidden * hidden
    hidden.mul_(10)
    try:
        square.backward()
    except RuntimeError as error:
        return "raises" if "modified by an inplace operation" in str(error) else None
    return x.grad.item()


print("plain =", json.dumps(gradient(torch.enable_grad())))
print("saved =", json.dumps(gradient(save_on_cpu())))
print("saved_and_copied =", json.dumps(gradient(save_on_cpu(pin_memory=True))))
