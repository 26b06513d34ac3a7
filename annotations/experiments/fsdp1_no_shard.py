"""What FSDP1 says of NO_SHARD, and of FULL_SHARD in a world of one rank."""

import json
import warnings

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

RANKS = 2

dist.init_process_group("gloo")


def warned(strategy, group=None):
    """The strategy taken, and the warning that came with it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = FullyShardedDataParallel(
            torch.nn.Linear(4, 4), group, strategy, device_id=torch.device("cpu")
        )
    kinds = {w.category.__name__ for w in caught if "NO_SHARD" in str(w.message)}
    return [model.sharding_strategy.name, *sorted(kinds)]


alone = [dist.new_group([rank]) for rank in range(2)][dist.get_rank()]
no_shard = warned(ShardingStrategy.NO_SHARD)
one_rank = warned(ShardingStrategy.FULL_SHARD, alone)
if dist.get_rank() == 0:
    print("no_shard =", json.dumps(no_shard), "\none_rank =", json.dumps(one_rank))
dist.destroy_process_group()
