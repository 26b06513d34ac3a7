"""Bytes that each rank of a ring sends, the ranks being rows of one tensor."""

import json

import torch

RANKS = 1


def turn(chunks, start, add):
    """Pass a chunk per rank around the ring t - 1 times; return what each rank sent."""
    ranks, sent = len(chunks), [0] * len(chunks)
    for step in range(ranks - 1):
        moved = [(rank, (rank - step + start) % ranks) for rank in range(ranks)]
        parts = [chunks[rank, index].clone() for rank, index in moved]
        for (rank, index), part in zip(moved, parts, strict=True):
            sent[rank] += part.numel() * part.element_size()
            to = chunks[(rank + 1) % ranks, index]
            to.copy_(to + part if add else part)
    return sorted(set(sent))


ranks = 8
activation = torch.arange(ranks * 64, dtype=torch.float32).reshape(ranks, ranks, 8)
whole, size = activation.sum(0), activation[0].numel() * 4
scattered = turn(activation, 0, add=True)
complete = all(
    torch.equal(activation[rank, (rank + 1) % ranks], whole[(rank + 1) % ranks])
    for rank in range(ranks)
)
gathered = turn(activation, 1, add=False)
equal = all(torch.equal(rank, whole) for rank in activation)
print(f"activation = {size}\nreduce_scatter = {scattered}\nall_gather = {gathered}")
print(f"all_reduce = {[a + b for a, b in zip(scattered, gathered, strict=True)]}")
print(f"sums = {json.dumps([complete, equal])}")
