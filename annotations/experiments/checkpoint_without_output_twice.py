"""What a second backward over a kept graph finds behind `CheckpointWithoutOutput`."""

import json

import torch
from megatron.core.tensor_parallel import random

RANKS = 1
UPSTREAMS = ["megatron"]
# This rank has no GPU, so there is no state of one to keep.
random._get_cuda_rng_state = random._set_cuda_rng_state = lambda *_, **__: None

outer = random.CheckpointWithoutOutput(fp8=None)
behind = outer.checkpoint(torch.tanh, torch.ones(4, requires_grad=True)).sin().sum()
outer.discard_output_and_register_recompute(behind)
behind.backward(retain_graph=True)
try:
    behind.backward()
except TypeError as error:
    print("second =", json.dumps(type(error).__name__))
