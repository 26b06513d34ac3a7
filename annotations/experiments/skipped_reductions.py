"""Whose aligned reductions fall into chunk 0's turn, by Megatron's table of turns."""

import json

from megatron.core.pipeline_parallel.schedules import get_schedule_table

UPSTREAMS = ["megatron"]

STAGES, CHUNKS, MICROBATCHES = 4, 3, 8
table = get_schedule_table(MICROBATCHES, CHUNKS, STAGES)
turns = [(microbatch, CHUNKS - 1 - chunk) for microbatch, chunk in table]  # backward


def launched(rank, skips_chunk_0):
    """Return the chunks whose last backward, `rank` turns ago, meets a launch,
    and how many turns are left then."""
    chunks, left = [], []
    for turn, (_, chunk) in enumerate(turns):
        if turn < rank or (skips_chunk_0 and chunk == 0):
            continue
        microbatch, due = turns[turn - rank]
        if microbatch == MICROBATCHES - 1:
            chunks.append(due)
            left.append(len(turns) - 1 - turn)
    return chunks, left


for name, skips in (("plain", False), ("interlaced", True)):
    print(name, "=", json.dumps([launched(rank, skips)[0] for rank in range(STAGES)]))
print("turns_left =", json.dumps([launched(rank, False)[1] for rank in range(STAGES)]))
