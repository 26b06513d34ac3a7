"""Which updates a bf16 weight loses, over all weights between 1 and 2."""

import json

import torch

RANKS = 1

weights = (1 + torch.arange(128) / 128).bfloat16()


def lost(share):
    """Return for how many weights an update of this share changes nothing."""
    updates = weights.float() * share
    return int(((weights.float() + updates).bfloat16() == weights).sum())


print("weights =", len(weights.unique()))
print("lost_below =", lost(0.999 * 2**-9))
print("kept_somewhere_above =", json.dumps(lost(1.01 * 2**-9) < 128))
