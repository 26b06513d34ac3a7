"""How Megatron's layer-wise optimizer deals tensors out, and what its gather takes."""

import json
from types import SimpleNamespace

import torch
import torch.distributed as dist
from megatron.core.optimizer.layer_wise_optimizer import LayerWiseDistributedOptimizer

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")


def deal(sizes, group, dtypes=None):
    dtypes = dtypes or [torch.float32] * len(sizes)
    tensors = [torch.ones(n, dtype=d) for n, d in zip(sizes, dtypes, strict=True)]
    params = [torch.nn.Parameter(tensor) for tensor in tensors]
    optimizer = LayerWiseDistributedOptimizer.__new__(LayerWiseDistributedOptimizer)
    optimizer.pg_collection = SimpleNamespace(dp_cp=group, expt_dp=group)
    optimizer.shard_params([torch.optim.SGD(params)])
    try:
        optimizer.allgather_params()
        outcome = "gathered"
    except (RuntimeError, ValueError, TypeError) as error:
        outcome = type(error).__name__
    return [[p.numel() for p in own] for own in optimizer.dp_cp_params_list], outcome


four = SimpleNamespace(size=lambda: 4, rank=lambda: 0)
double = torch.float64
results = {
    "four_ranks": deal(range(1, 11), four)[0],
    "equal": deal([3, 3, 5, 5], dist.group.WORLD),
    "unequal": deal([3, 4], dist.group.WORLD),
    "two_dtypes": deal([3] * 4, dist.group.WORLD, [torch.float32] * 3 + [double]),
}
if dist.get_rank() == 0:
    print("\n".join(f"{name} = {json.dumps(x)}" for name, x in results.items()))
