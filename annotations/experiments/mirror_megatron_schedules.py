"""Megatron's warm-up counts and schedule tables beside the mini's."""

import json
from types import SimpleNamespace

from megatron.core.pipeline_parallel import schedules as megatron

from mini_impls import schedules as mini

UPSTREAMS = ["megatron", "minis"]

sizes = [(m, v, n) for m in range(1, 13) for v in (1, 2, 3) for n in range(1, 7)]
tables = [mini.get_schedule_table(*s) == megatron.get_schedule_table(*s) for s in sizes]
print("same_tables =", json.dumps(all(tables)), "\ntables =", len(tables))


def counts(rank, chunks, virtual):
    ours = mini.get_pp_rank_microbatches(
        8, chunks, 4, pipeline_parallel_size=4, pipeline_parallel_rank=rank
    )
    group = SimpleNamespace(size=lambda: 4, rank=lambda: rank)
    told = SimpleNamespace(pp_group=group, virtual_pipeline_model_parallel_size=virtual)
    return ours == megatron.get_pp_rank_microbatches(
        8, chunks, 4, p2p_communicator=told
    )


ranks = range(4)
print("plain =", json.dumps(all(counts(rank, 1, None) for rank in ranks)))
print("two_chunks =", json.dumps(all(counts(rank, 2, 2) for rank in ranks)))
print("one_virtual_chunk =", json.dumps([counts(rank, 1, 1) for rank in ranks]))
