"""A checkpoint of a dropout whose random state is replayed in backward, or is not."""

import json

import torch
from torch.utils.checkpoint import checkpoint

RANKS = 1

torch.manual_seed(0)
for name, replay in (("replayed", True), ("not_replayed", False)):
    x = torch.ones(64, requires_grad=True)
    options = {"use_reentrant": False, "preserve_rng_state": replay}
    output = checkpoint(torch.nn.functional.dropout, x, **options)
    output.sum().backward()
    print(
        name, "=", json.dumps({"backward_fits": torch.equal(x.grad, output.detach())})
    )
