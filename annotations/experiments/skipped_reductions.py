"""Whose aligned reductions fall into chunk 0's turn, by Megatron's table of turns."""

import json

from megatron.core.pipeline_parallel.schedules import get_schedule_table

UPSTREAMS = ["megatron"]

STAGES, CHUNKS, MICROBATCHES = 4, 3, 8
table = get_schedule_table(MICROBATCHES, CHUNKS, STAGES)
turns = [(microbatch, CHUNKS - 1 - chunk) for microbatch, chunk in table]  # backward


def launched(rank, skips_chunk_0):
    """Return the chunks whose last backward, `rank` turns ago, is met by a launch."""
    chunks = []
    for turn, (_, chunk) in enumerate(turns):
        if turn < rank or (skips_chunk_0 and chunk == 0):
            continue
        microbatch, due = turns[turn - rank]
        if microbatch == MICROBATCHES - 1:
            chunks.append(due)
    return chunks


for name, skips in (("plain", False), ("interlaced", True)):
    print(name, "=", json.dumps([launched(rank, skips) for rank in range(STAGES)]))
