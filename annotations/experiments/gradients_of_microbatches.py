"""Gradients that a weight holds after a few microbatches and after many."""

import json

import torch

RANKS = 1


def gradients(microbatches):
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(2)))
    buffers = set()
    for _ in range(microbatches):
        model(torch.ones(1, 8)).sum().backward()
        buffers |= {p.grad.data_ptr() for p in model.parameters()}
    size = sum(p.grad.nbytes for p in model.parameters())
    return {"bytes": size, "buffers_for_each_weight": len(buffers) / 4}


print("of_4 =", json.dumps(gradients(4)))
print("of_12 =", json.dumps(gradients(12)))
