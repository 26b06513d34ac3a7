"""How many times smaller a cast makes gradients of a dtype."""

import json

import torch

RANKS = 1


def ratios(baseline):
    gradient = torch.ones(100, dtype=baseline)
    casts = (gradient.to(dtype) for dtype in (torch.float16, torch.int8))
    return [gradient.nbytes / cast.nbytes for cast in casts]


print("fp32 =", json.dumps(ratios(torch.float32)))
print("bf16 =", json.dumps(ratios(torch.bfloat16)))
