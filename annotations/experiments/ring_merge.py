"""What torch's merge makes of two halves, and of scores that would overflow."""

import json

import torch
from torch.distributed.tensor.experimental._context_parallel import _attention as cp

RANKS = 1

kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


def merged(query, key, value):
    """Return the attention over both halves of the keys, each met alone."""
    merger = cp._SDPAMerger(True, 2)
    for keys, values in zip(key.chunk(2, 2), value.chunk(2, 2), strict=True):
        merger.step(*kernel(query, keys.contiguous(), values.contiguous()), False)
    return merger.results()[0]


torch.manual_seed(0)
query, key, value = torch.randn(3, 1, 2, 8, 4)
whole = kernel(query, key, value)
same = torch.allclose(merged(query, key, value), whole[0], atol=1e-6)
print("merged_is_softmax_of_both =", json.dumps(same))
large = merged(query, key * 1000, value)
print(
    "scores_of_a_thousand =", json.dumps("finite" if large.isfinite().all() else "not")
)
print("kernel_returns =", len(whole))
