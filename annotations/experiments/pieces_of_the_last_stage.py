"""What interleaving makes the first and the last stage hold, in microbatches."""

import json
from itertools import accumulate
from types import SimpleNamespace

from megatron.core.pipeline_parallel import schedules
from megatron.core.transformer.cuda_graphs import convert_schedule_table_to_order

RANKS = 1
UPSTREAMS = ["megatron"]


def held(p, rank, v, m):
    """Return the most pieces in flight on a rank, as shares of its microbatch."""
    group = SimpleNamespace(size=lambda: p, rank=lambda: rank)
    peer = SimpleNamespace(pp_group=group, virtual_pipeline_model_parallel_size=v)
    chunks = v or 1
    first = schedules.get_pp_rank_microbatches(m, chunks, p, False, False, peer)[2]
    table = schedules.get_schedule_table(m, chunks, p)
    order = convert_schedule_table_to_order(first, chunks, table)
    return max(accumulate(1 if chunk > 0 else -1 for chunk in order)) / chunks


for name, rank in ("first", 0), ("last", 7):
    found = {v or 1: held(8, rank, v, 64) for v in (None, 2, 4)}
    print(f"{name} = {json.dumps(found)}")
