"""What recomputing a fused attention frees, and how often its kernel then runs."""

import json

import torch
from megatron.core.tensor_parallel import random
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.functional import scaled_dot_product_attention as core
from torch.utils._python_dispatch import TorchDispatchMode

RANKS = 1
UPSTREAMS = ["megatron"]
TOKENS, HEADS, SIZE = 256, 8, 64
random._get_cuda_rng_state = random._set_cuda_rng_state = lambda *_, **__: None


class Kernels(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "flash_attention" in str(func) and "backward" not in str(func):
            runs.append(func)
        return func(*args, **(kwargs or {}))


def keep(tensor):
    kept[tensor.untyped_storage().data_ptr()] = tensor.nbytes
    return tensor


runners = {"stored": lambda core, _, *given: core(*given)}
for name, run in {**runners, "recomputed": random.checkpoint}.items():
    kept, runs = {}, []
    given = [torch.randn(1, HEADS, TOKENS, SIZE, requires_grad=True) for _ in range(3)]
    with Kernels(), saved_tensors_hooks(keep, lambda tensor: tensor):
        out = run(core, False, *given)
        behind = out @ torch.nn.Parameter(torch.eye(SIZE))  # as the projection
        total = sum(kept.values()) - SIZE * SIZE * 4
        behind.sum().backward()
    figures = {"bytes_per_token_and_head": total / TOKENS / HEADS, "runs": len(runs)}
    print(name, "=", json.dumps(figures))
