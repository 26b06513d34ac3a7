"""How many pieces of the model a rank holds: the schedules' own orders, replayed."""

import json
from itertools import accumulate
from types import SimpleNamespace

from megatron.core.pipeline_parallel import schedules
from megatron.core.transformer.cuda_graphs import convert_schedule_table_to_order

RANKS = 1
UPSTREAMS = ["megatron"]


def warm_up(p, rank, v, size, moe=False, m=64, forward_only=False):
    """Return the forwards before the first backward."""
    group = SimpleNamespace(size=lambda: p, rank=lambda: rank)
    peer = SimpleNamespace(pp_group=group, virtual_pipeline_model_parallel_size=v)
    return schedules.get_pp_rank_microbatches(m, v or 1, size, forward_only, moe, peer)[
        2
    ]


def held(p, v, m):
    """Return the most forwards without their backward on the first rank."""
    table, first = schedules.get_schedule_table(m, v or 1, p), warm_up(p, 0, v, p, m=m)
    order = convert_schedule_table_to_order(first, v or 1, table)
    return max(accumulate(1 if chunk > 0 else -1 for chunk in order))


print(f"plain = {[warm_up(4, rank, None, 4) for rank in range(4)]}")
print(f"interleaved = {[warm_up(4, rank, 2, 4) for rank in range(4)]}")
print(f"interleaved_moe = {[warm_up(4, rank, 2, 4, True) for rank in range(4)]}")
print(f"one_chunk = {[held(4, 1, 64), held(4, None, 64)]}")
forwards = [warm_up(4, rank, None, 4, m=8, forward_only=True) for rank in range(4)]
print(f"forward_only = {forwards}")
print(f"groups_of_5 = {[warm_up(4, rank, 2, 5) for rank in range(4)]}")
print(f"held = {json.dumps({'4x2': held(4, 2, 64), '8x3': held(8, 3, 64)})}")
print(f"held_few = {json.dumps({'4x2': held(4, 2, 4), '8x1': held(8, None, 4)})}")
