"""Bytes that a step of torch's Adam leaves for each parameter, by recipe."""

import json

import torch

RANKS = 1
N = 1000


def count(dtype, gradients=torch.float32, copied_gradients=False):
    """Return bytes by kind; Adam steps a copy in fp32 where the weights are none."""
    weight = torch.ones(N, dtype=dtype)
    mixed = dtype is not torch.float32
    master = weight.float() if mixed else weight
    gradient = torch.ones(N, dtype=gradients)
    master.requires_grad_().grad = gradient.float()
    optimizer = torch.optim.Adam([master])
    optimizer.step()
    state = optimizer.state[master]
    moments = state["exp_avg"].nbytes + state["exp_avg_sq"].nbytes
    copies = master.nbytes if mixed else 0
    copies += master.grad.nbytes if copied_gradients else 0
    kinds = [weight.nbytes, gradient.nbytes, copies, moments]
    sums = sum(kinds), sum(kinds) - copies
    names = ("weights", "gradients", "copies", "moments", "total", "without_copies")
    return dict(zip(names, (size // N for size in (*kinds, *sums)), strict=True))


bf16, fp16 = torch.bfloat16, torch.float16
print("fp32 =", json.dumps(count(torch.float32)))
print("mixed =", json.dumps(count(bf16, bf16)))
print("fp32_gradients =", json.dumps(count(bf16)))
print("fp16_copied_gradients =", json.dumps(count(fp16, fp16, copied_gradients=True)))
