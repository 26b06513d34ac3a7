"""What the ends of a pair of stages launch, where transfers go one by one."""

import json
from types import SimpleNamespace as Made

import torch.distributed as dist
from megatron.core.pipeline_parallel import p2p_communication

RANKS = 1
UPSTREAMS = ["megatron"]

launched = []
dist.isend = lambda tensor, dst, group: launched.append(("send", dst, group))
dist.irecv = lambda tensor, src, group: launched.append(("receive", src, group))
dist.get_backend = lambda group: "nccl"


def toward(peer: int, rank: int, size: int, place: int) -> list[str]:
    """What a rank that takes itself for `place` of the group launches toward a peer."""
    launched.clear()
    p2p_communication._p2p_ops(
        tensor_send_prev=1, tensor_recv_prev=1, tensor_send_next=1, tensor_recv_next=1,
        group=Made(size=lambda: size, rank=lambda: place),
        prev_pipeline_rank=(rank - 1) % size, next_pipeline_rank=(rank + 1) % size,
    )  # fmt: skip
    return [what for what, other, _ in launched if other == peer]


def opposite(size: int, parity: bool) -> list[bool]:
    """Whether the ends of each pair begin with opposite halves."""
    first = lambda peer, rank: toward(peer, rank, size, rank if parity else 0)[0]  # noqa: E731
    return [first((r + 1) % size, r) != first(r, (r + 1) % size) for r in range(size)]


for name, parity in (("by_parity", True), ("all_as_even", False)):
    print(name, "=", json.dumps({n: all(opposite(n, parity)) for n in (2, 3, 4, 5)}))
