"""Which share of a layer's bf16 weights an update of one size leaves alone."""

import json

import torch

RANKS = 1

torch.manual_seed(0)
normal = torch.randn(1_000_000)


def lost(size, deviation=0.02):  # core's init_method_std
    """Return per cent of the weights that this, added or taken away, leaves alone."""
    weights = normal.mul(deviation).bfloat16()
    updates = size * torch.randn(len(weights)).sign()
    moved = (weights.float() + updates).bfloat16() != weights
    return round(100 * (1 - moved.double().mean().item()), 1)


print("lost_of_projections =", lost(3e-5, 0.02 / (2 * 32) ** 0.5))
print("lost =", json.dumps({str(u): lost(u) for u in (3e-4, 1e-4, 3e-5, 3e-6)}))
