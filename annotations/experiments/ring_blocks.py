"""How much of a block each hop of torch's ring computes, on each of three ranks."""

import json
from types import SimpleNamespace

import torch
from torch.distributed.tensor.experimental._context_parallel import _attention as cp

RANKS = 1

group = torch.distributed.ProcessGroup(0, 3)
at = {"rank": 0}
cp.dist = SimpleNamespace(
    ProcessGroup=torch.distributed.ProcessGroup,
    get_rank=lambda group: at["rank"],
    get_world_size=lambda group: 3,
)
# Whatever is passed on comes back as if it were the neighbour's.
box = SimpleNamespace(exchange_buffers=lambda kept: setattr(box, "kept", kept))
box.next_buffer = lambda: box.kept
cp._create_rotater = lambda *args, **kwargs: box
seen = []


def kernel(query, key, value, is_causal):
    """Note how much is asked for, and with which mask."""
    seen.append((query.size(2) * key.size(2) / 64, is_causal))
    return query, query[..., 0]


for at["rank"] in range(3):
    tensor = torch.randn(1, 1, 8, 4)
    cp._templated_ring_attention(group, 2, kernel, tensor, tensor, tensor, True)
later = [each for hop in range(3) for each in seen[3 * hop + 1 : 3 * hop + 3]]
print("after_own_keys =", json.dumps(sorted({part for part, _ in later})))
print("calls =", len(seen), "\nmasked_later =", json.dumps(any(m for _, m in later)))
