"""How many groups Megatron makes for 512 ranks of a dense model, and of whom."""

import json

import torch.distributed as dist
from megatron.core import parallel_state
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1
UPSTREAMS = ["megatron"]

made = []


class Group:
    """What a rank is given for a group."""


def create_group(ranks, *, backend=None, **_):
    made.append((tuple(ranks), backend))
    return Group()


parallel_state.create_group = create_group
dist.init_process_group("fake", rank=0, world_size=512, store=FakeStore())
parallel_state.initialize_model_parallel(
    tensor_model_parallel_size=8, pipeline_model_parallel_size=8
)
mine = [(ranks, backend) for ranks, backend in made if 0 in ranks]
sets = {ranks for ranks, _ in mine}
print("made =", len(made))
print("by_gloo =", sum(backend == "gloo" for _, backend in made))
print("of_rank_0 =", len(mine))
print("sets_of_rank_0 =", json.dumps(sorted(len(ranks) for ranks in sets)))
print("of_one_rank =", sum(len(ranks) == 1 for ranks, _ in mine))
data = tuple(range(0, 64, 8))
print("of_the_data_parallel_ranks =", sum(ranks == data for ranks, _ in mine))
