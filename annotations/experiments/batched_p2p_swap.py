"""Four transfers between two stages, in one batch and one by one: who receives what."""

import json

import torch
import torch.distributed as dist
from megatron.core.pipeline_parallel import p2p_communication

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
group = dist.new_group([0, 1])
rank = dist.get_rank()


def exchange(name: str) -> list[float]:
    """Send an activation (10 + rank) and a gradient (20 + rank); return what came."""
    came = {"recv_prev": torch.zeros(1), "recv_next": torch.zeros(1)}
    requests = getattr(p2p_communication, name)(
        tensor_send_prev=torch.tensor([20.0 + rank]),
        tensor_recv_prev=came["recv_prev"],
        tensor_send_next=torch.tensor([10.0 + rank]),
        tensor_recv_next=came["recv_next"],
        group=group,
        prev_pipeline_rank=1 - rank,
        next_pipeline_rank=1 - rank,
    )
    for request in requests if isinstance(requests, list) else requests.values():
        request.wait()
    return [came["recv_prev"].item(), came["recv_next"].item()]


one_by_one, batched = exchange("_p2p_ops"), exchange("_batched_p2p_ops")
if rank == 0:
    print(f"sent_by_the_peer = {json.dumps([11.0, 21.0])}")
    print(f"one_by_one = {json.dumps(one_by_one)}")
    print(f"batched = {json.dumps(batched)}")
dist.destroy_process_group()
