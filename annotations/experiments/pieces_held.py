"""How many pieces of the model a rank holds: the schedules' own counts, replayed."""

import json
from types import SimpleNamespace

from megatron.core.pipeline_parallel.schedules import (
    get_pp_rank_microbatches,
    get_schedule_table,
)

RANKS = 1
UPSTREAMS = ["megatron"]


def warm_up(p: int, rank: int, v: int | None, size: int, moe: bool = False) -> int:
    """Return the forwards before the first backward."""
    group = SimpleNamespace(size=lambda: p, rank=lambda: rank)
    peer = SimpleNamespace(pp_group=group, virtual_pipeline_model_parallel_size=v)
    return get_pp_rank_microbatches(64, v or 1, size, False, moe, peer)[2]


def gaps(p: int, size: int) -> list[int]:
    """Return how long results of the last rank wait for the first one, in steps."""
    table = get_schedule_table(2 * size, 2, size)
    made = {piece: at + p for at, piece in enumerate(table)}
    return sorted({at - made[m, c - 1] for at, (m, c) in enumerate(table) if c})


figures = {
    "plain": [warm_up(4, rank, None, 4) for rank in range(4)],
    "interleaved": [warm_up(4, rank, 2, 4) for rank in range(4)],
    "interleaved_moe": [warm_up(4, rank, 2, 4, True) for rank in range(4)],
    "groups_of_5": [warm_up(4, rank, 2, 5) for rank in range(4)],
    "first_rank_held_4x2": warm_up(4, 0, 2, 4) + 1,
    "first_rank_held_8x3": warm_up(8, 0, 3, 8) + 1,
    "slack_p4_n4": gaps(4, 4),
    "slack_p4_n7": gaps(4, 7),
}
for name, value in figures.items():
    print(f"{name} = {json.dumps(value)}")
