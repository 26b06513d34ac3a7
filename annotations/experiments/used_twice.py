"""How often the hook of a parameter that is used twice reports, with checkpoints."""

import json

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.distributed import (
    DistributedDataParallel,
    DistributedDataParallelConfig,
)
from megatron.core.transformer import TransformerConfig
from torch import nn
from torch.utils.checkpoint import checkpoint

RANKS = 1
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
config = TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=1)


def counts(run) -> list[int]:
    """Return the ready counts of the weight after one backward through it twice."""
    ddp = DistributedDataParallelConfig(overlap_grad_reduce=True)
    model = DistributedDataParallel(config, ddp, nn.Linear(8, 8, bias=False))
    layer = model.module
    x = torch.ones(2, 8, requires_grad=True)
    run(layer, run(layer, x)).sum().backward()
    return list(model.bucket_groups[0].per_param_grad_ready_counts.values())


ways = {
    "plain": lambda layer, x: layer(x),
    "reentrant": lambda layer, x: checkpoint(layer, x, use_reentrant=True),
    "not_reentrant": lambda layer, x: checkpoint(layer, x, use_reentrant=False),
}
for name, run in ways.items():
    print(f"{name} = {json.dumps(counts(run))}")
