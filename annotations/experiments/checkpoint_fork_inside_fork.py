"""Whether a checkpoint in a fork repeats a draw, then one in a fork of that stream."""

import json
from unittest.mock import patch

import torch
from megatron.core.tensor_parallel import random

RANKS = 1
UPSTREAMS = ["megatron"]


def run(outside, inside):
    """Return whether the gradients of an all-ones input are its masked outputs."""
    random.initialize_rng_tracker(force_reset=True)
    tracker = random.get_cuda_rng_tracker()
    tracker.add("model-parallel-rng", 1)
    fork = {True: tracker.fork, False: torch.enable_grad}

    def drop(x):
        torch.rand(8)
        with fork[inside]():
            return torch.nn.functional.dropout(x)

    x = torch.ones(64, requires_grad=True)
    with fork[outside]():
        output = random.checkpoint(drop, False, x)
    output.sum().backward()
    return torch.equal(x.grad, output.detach())


with (
    patch.object(random, "_get_cuda_rng_state", lambda **_: torch.get_rng_state()),
    patch.object(random, "_set_cuda_rng_state", lambda s, **_: torch.set_rng_state(s)),
    patch.object(torch.cuda, "get_rng_state", torch.get_rng_state),
    patch.object(torch.cuda, "manual_seed", torch.manual_seed),
):
    print(f"inside_alone = {json.dumps(run(False, True))}")
    print(f"outside_alone = {json.dumps(run(True, False))}")
    print(f"both = {json.dumps(run(True, True))}")
