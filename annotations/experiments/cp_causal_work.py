"""Share of the causal scores that each of four ranks computes, for three orders."""

import json

import torch
from torch.distributed.tensor.experimental._context_parallel import _load_balancer as lb

RANKS = 1

LENGTH = 64


def work(order, documents=(LENGTH,)):
    """Scores of each rank in per cent of all, with a causal mask in each document."""
    keys = torch.cat([torch.arange(1, length + 1) for length in documents])
    shares = keys[order].view(4, -1).sum(1) / keys.sum() * 100
    return json.dumps([round(share, 1) for share in shares.tolist()])


balanced = lb._HeadTailLoadBalancer(LENGTH, 4, "cpu")._generate_indices()[0]
packed = (48, 16)
by_document = lb._PerDocumentHeadTailLoadBalancer([list(packed)], 4, "cpu")
print("in_order =", work(torch.arange(LENGTH)))
print("head_and_tail =", work(balanced))
print("packed =", work(balanced, packed))
print("packed_by_document =", work(by_document._generate_indices()[0], packed))
try:
    lb._HeadTailLoadBalancer(60, 4, "cpu")._generate_indices()
except AssertionError as error:
    print("sixty_tokens =", json.dumps(f"AssertionError {error}"))
