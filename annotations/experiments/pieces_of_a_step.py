"""Whether the last rank's forward and backward of one step are of one piece."""

import json
from types import SimpleNamespace

from megatron.core.pipeline_parallel import schedules

RANKS = 1
UPSTREAMS = ["megatron"]


def shares(moe, p=4, v=2, m=16):
    """Replay the steady state: forward number n + k stands beside backward k."""
    group = SimpleNamespace(size=lambda: p, rank=lambda: p - 1)
    peer = SimpleNamespace(pp_group=group, virtual_pipeline_model_parallel_size=v)
    first = schedules.get_pp_rank_microbatches(m, v, p, False, moe, peer)[2]
    table = schedules.get_schedule_table(m, v, p)
    steps = zip(table[first:], table, strict=False)
    return any((batch, v - 1 - chunk) == forward for forward, (batch, chunk) in steps)


print(f"plain = {json.dumps(shares(False))}")
print(f"moe_overlapped = {json.dumps(shares(True))}")
