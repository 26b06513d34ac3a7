"""How many of 16 tokens torch's ring gets right, by the order they were cut in."""

import torch
import torch.distributed as dist
from torch.distributed.tensor.experimental._context_parallel import _attention as cp
from torch.distributed.tensor.experimental._context_parallel import _load_balancer as by

from mini_impls import context_parallel as mini
from mini_impls.compare.context_parallel import TorchRing

RANKS = 2

dist.init_process_group("gloo")
mesh = dist.init_device_mesh("cpu", (2,))
torch.manual_seed(0)
whole = torch.randn(3, 1, 2, 16, 4)
expected = mini.attention(*whole)
apart = torch.cat([mini.attention(*half) for half in whole.split(8, dim=-2)], dim=-2)


def right(balancer, expected=expected):
    """Return how many tokens have what attention in one place gives them."""
    qkv = cp._context_parallel_shard(mesh, [*whole], [2, 2, 2], balancer)
    output = TorchRing.apply(*qkv, dist.group.WORLD)
    result = cp.context_parallel_unshard(mesh, [output], [2], balancer)[0]
    close = torch.isclose(result, expected, atol=1e-5).all(-1).all(1)
    return int(close.sum())


two = by._PerDocumentHeadTailLoadBalancer([[8, 8]], 2, "cpu")
of = right(None), right(by._HeadTailLoadBalancer(16, 2, "cpu")), right(two)
within = right(two, apart)
if dist.get_rank() == 0:
    print("in_order =", of[0], "\nhead_and_tail =", of[1], "\ndocuments =", of[2])
    print("within_documents =", within)
