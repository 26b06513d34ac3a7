"""What a checkpointed region keeps for backward, and what it runs and sends again."""

import json

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.model_parallel_config import ModelParallelConfig
from megatron.core.tensor_parallel import layers, random

RANKS = 2
UPSTREAMS = ["megatron"]
dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(2, create_gloo_process_groups=False)
config = ModelParallelConfig(tensor_model_parallel_size=2, use_cpu_initialization=True)
options = {"config": config, "init_method": torch.nn.init.ones_, "bias": False}
options |= {"input_is_parallel": True, "skip_bias_add": False}
row, real, calls = layers.RowParallelLinear(8, 4, **options), dist.all_reduce, []
# These ranks have no GPU, so there is no state of one to keep.
random._get_cuda_rng_state = random._set_cuda_rng_state = lambda *_, **__: None
dist.all_reduce = lambda *a, **k: calls.append("all_reduce") or real(*a, **k)
kept, keep = [], (lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor)


def region(x):
    return calls.append("forward") or row(x.tanh())[0].tanh()


runs = {"plain": region, "checkpointed": lambda x: random.checkpoint(region, False, x)}
for name, run in runs.items():
    inputs = torch.ones(1, 1, 4, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(*keep):
        output = run(inputs)
    found = {"kept": len(kept), "keeps_its_input": any(t is inputs for t in kept)}
    calls.clear()
    output.sum().backward()
    kept.clear()
    if dist.get_rank() == 0:
        print(name, "=", json.dumps(found | {"in_backward": calls}))
dist.destroy_process_group()
