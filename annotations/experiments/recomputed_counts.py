"""How often Megatron's router counts tokens of a layer that is computed twice."""

import json
from types import SimpleNamespace as Made

import torch
from megatron.core.tensor_parallel import random
from megatron.core.transformer.moe.router import TopKRouter
from torch.utils.checkpoint import checkpoint

UPSTREAMS = ["megatron"]

chosen = torch.tensor([[True, False], [True, False], [False, True]])
random._get_all_rng_states = lambda: ()  # no CUDA generators here
random._set_all_rng_states = lambda *states: None
random._fork_rng = torch.random.fork_rng


def counts(run):
    router = Made(enable_expert_bias=True, local_tokens_per_expert=torch.zeros(2))

    def layer(given):
        TopKRouter._apply_expert_bias(router, chosen)
        return given.exp()

    run(layer, torch.ones(2, requires_grad=True)).sum().backward()
    return router.local_tokens_per_expert.int().tolist()


ways = {
    "once": lambda layer, given: layer(given),
    "megatron": lambda layer, given: random.checkpoint(layer, False, given),
    "torch_hooks": lambda layer, given: checkpoint(layer, given, use_reentrant=False),
}
for name, run in ways.items():
    print(f"{name} = {json.dumps(counts(run))}")
