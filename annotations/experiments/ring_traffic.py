"""What torch's ring sends on two ranks by each method, around the CPU's kernel."""

import json

import torch
import torch.distributed as dist
from torch.distributed.tensor.experimental._context_parallel import _attention as cp

from mini_impls import context_parallel as mini
from mini_impls.compare.context_parallel import TorchRing

RANKS = 2

dist.init_process_group("gloo")
rank, group = dist.get_rank(), dist.group.WORLD
seen = []


def noted(real, word):
    """Return the functional collective, which notes its calls."""
    return lambda *args, **kwargs: (seen.append(word), real(*args, **kwargs))[1]


cp.ft_c.permute_tensor = noted(cp.ft_c.permute_tensor, "all_to_all")
cp.ft_c.all_gather_single = noted(cp.ft_c.all_gather_single, "all_gather")
torch.manual_seed(0)
whole = torch.randn(3, 1, 2, 8, 4)
for method in ("alltoall", "allgather"):
    cp.set_rotate_method(method)
    seen.clear()
    inputs = [mini.shard(t, rank, 2).requires_grad_() for t in whole]
    output = TorchRing.apply(*inputs, group)
    forward = [*seen]
    output.sum().backward()
    if rank == 0:
        sent = {"forward": forward, "backward": seen[len(forward) :]}
        print(method, "=", json.dumps(sent))
same = torch.allclose(output, mini.shard(mini.attention(*whole), rank, 2), atol=1e-6)
if rank == 0:
    print("equal_to_one_place =", json.dumps(same))
