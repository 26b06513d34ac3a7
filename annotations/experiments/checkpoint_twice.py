"""A dropout that Megatron checkpoints, whose graph is kept and goes back twice."""

import json

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.tensor_parallel import random

RANKS = 2
UPSTREAMS = ["megatron"]
dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(2, create_gloo_process_groups=False)
# These ranks have no GPU: the generator of the CPU takes its place.
random._get_cuda_rng_state = lambda *_, **__: torch.get_rng_state()
random._set_cuda_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
torch.cuda.get_rng_state = torch.get_rng_state
torch.cuda.manual_seed = torch.manual_seed
torch.cuda.current_device = lambda: torch.device("cpu")
random.logging.disable()
random.model_parallel_cuda_manual_seed(0)


fork, dropout = random.get_cuda_rng_tracker().fork, torch.nn.functional.dropout
for name, is_sharded in ("whole_input", 0), ("sharded_input", 1), ("fork_around", 0):
    leaf, fits = torch.ones(64, requires_grad=True), []
    if name == "fork_around":
        with fork():
            output = random.checkpoint(dropout, is_sharded, leaf.clone())
    else:
        output = random.checkpoint(fork()(dropout), is_sharded, leaf.clone())
    for leaf.grad in (None, None):
        try:
            output.sum().backward(retain_graph=True)
            fits.append(torch.equal(leaf.grad, output.detach()))
        except RuntimeError:
            fits.append("RuntimeError")
    if dist.get_rank() == 0:
        print(name, "=", json.dumps(fits))
dist.destroy_process_group()
