"""Whether a bf16 gradient buffer is rounded by the scaling before its reduction."""

import json

import torch

RANKS = 1

torch.manual_seed(1)
gradients = torch.randn(4096).bfloat16()
exact = {}
for ranks in 2, 3, 4, 6, 8, 12, 64:
    buffer = gradients.clone()
    buffer *= 1.0 / ranks
    exact[ranks] = torch.equal(buffer.double() * ranks, gradients.double())
print("exact =", json.dumps([ranks for ranks in exact if exact[ranks]]))
print("rounded =", json.dumps([ranks for ranks in exact if not exact[ranks]]))
