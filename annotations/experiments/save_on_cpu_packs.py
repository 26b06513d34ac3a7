"""What save_on_cpu packs of an expanded tensor, and what becomes of a check."""

import json

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import save_on_cpu

RANKS = 1


def packed(pin_memory=False, device="cpu"):
    """Return the MiB of an expanded mask, and of what becomes of it."""
    mask = torch.ones(1, 1024, 1024, device=device).expand(32, 1024, 1024)
    copy = save_on_cpu(pin_memory).pack_hook(mask)[1]
    return json.dumps([t.untyped_storage().nbytes() // 2**20 for t in (mask, copy)])


with FakeTensorMode():  # sizes of a GPU's tensor without the GPU
    print("expanded_on_gpu =", packed(device="cuda"))
print("expanded =", packed(pin_memory=True))
print("expanded_by_default =", packed())


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
