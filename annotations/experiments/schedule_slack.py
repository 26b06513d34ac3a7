"""How long the last rank's result waits for the first rank, in steps of a schedule."""

import json

from megatron.core.pipeline_parallel.schedules import get_schedule_table

RANKS = 1
UPSTREAMS = ["megatron"]


def run(p, size):
    """Run the table on p ranks; a step ends with one transfer to the next rank."""
    table, done, wanted, waited = get_schedule_table(2 * size, 2, size), {}, {}, {}
    for at, (batch, chunk) in enumerate(table):
        for rank in range(p):
            source = (rank - 1, batch, chunk) if rank else (p - 1, batch, chunk - 1)
            ready = done.get(source, 0)
            free = done[(rank, *table[at - 1])] if at else 0
            done[rank, batch, chunk] = max(ready, free) + 1
            if chunk and not rank:
                before = done[0, batch, 0] - 1
                wanted[batch], waited[batch] = free - before, ready - before
    return {
        "wanted_after": sorted(set(wanted.values())),
        "ready_after": sorted(set(waited.values())),
    }


print("p4_n4 =", json.dumps(run(4, 4)))
print("p4_n7 =", json.dumps(run(4, 7)))
