"""What `CheckpointWithoutOutput` frees and fills again, and when it fails."""

import json

import torch
from megatron.core.tensor_parallel import random

RANKS = 1
UPSTREAMS = ["megatron"]
# This rank has no GPU, so there is no state of one to keep.
random._get_cuda_rng_state = random._set_cuda_rng_state = lambda *_, **__: None
runs = []


def run(x):
    runs.append(1)
    return x.tanh()


def forward_and_backward(outer):
    made = outer.checkpoint(run, torch.ones(4, requires_grad=True))
    memory = made.untyped_storage()
    behind, sizes = made.sin(), [memory.nbytes()]
    outer.discard_output_and_register_recompute(behind)
    sizes.append(memory.nbytes())
    made.register_hook(lambda _: sizes.append(memory.nbytes()))
    behind.sum().backward()
    return {"bytes": sizes, "runs": len(runs)}


for name, options in (("by_default", {}), ("of_none", {"fp8": None})):
    outer = random.CheckpointWithoutOutput(**options)
    try:
        found = forward_and_backward(outer)
    except NameError as error:
        found = {"fails": str(error)}
    print(name, "=", json.dumps({"fp8": outer.fp8} | found))
