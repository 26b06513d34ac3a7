"""Which draw before a parallel layer's weight changes it, by its generator."""

import json
from unittest.mock import patch

import torch
from megatron.core.tensor_parallel import layers, random

RANKS = 1
UPSTREAMS = ["megatron"]

gpu = torch.Generator()  # stands for the default one of a GPU
patch.object(torch.cuda, "get_rng_state", gpu.get_state).start()
patch.object(torch.cuda, "manual_seed", gpu.manual_seed).start()
patch.object(random, "_get_cuda_rng_state", lambda **_: gpu.get_state()).start()
patch.object(random, "_set_cuda_rng_state", lambda s, **_: gpu.set_state(s)).start()


def in_the_stream():
    with random.get_cuda_rng_tracker().fork():
        torch.rand(1, generator=gpu)


def weight(draw):
    """Return the weight that a layer draws behind a draw of another kind."""
    seeds = {"tp_rank": 0, "ep_rank": 0, "etp_rank": 0, "force_reset_rng": True}
    random.model_parallel_cuda_manual_seed(1234, **seeds)
    draw()
    made = torch.empty(4)
    layers._initialize_affine_weight_gpu(made, lambda w: w.normal_(generator=gpu), 0)
    return made.tolist()


draws = {"cpu": lambda: torch.rand(1), "stream": in_the_stream}
draws["gpu"] = lambda: torch.rand(1, generator=gpu)
alone = weight(lambda: None)
print(
    "alike =", json.dumps({name: weight(call) == alone for name, call in draws.items()})
)
