"""Which chunks Megatron gives a rank of a group of three, and what they meet."""

import json
from types import SimpleNamespace

import torch
from megatron.core import utils

RANKS = 1
UPSTREAMS = ["megatron"]

utils.get_pg_size, utils.get_pg_rank = lambda group: 3, lambda group: group.at
tokens = torch.arange(12).repeat(2, 1)  # 6 chunks of 2


def split(rank, tokens):
    """Return the tokens that this rank of three keeps."""
    group = SimpleNamespace(at=rank)
    return utils.get_batch_on_this_cp_rank({"tokens": tokens}, group)["tokens"]


chunks = [(split(rank, tokens)[0, ::2] // 2).tolist() for rank in range(3)]
print("chunks =", json.dumps(chunks))
print("chunks_met =", json.dumps([sum(c + 1 for c in mine) for mine in chunks]))
neighbours = [sum(c + 1 for c in (2 * rank, 2 * rank + 1)) for rank in range(3)]
print("neighbours_met =", json.dumps(neighbours))
try:
    split(0, tokens[:, :10])
except Exception as error:
    print("uneven =", json.dumps(type(error).__name__))
