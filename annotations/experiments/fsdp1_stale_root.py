"""What FSDP1 computes after its shards were filled in place between evaluations."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import ShardingStrategy

RANKS = 2

dist.init_process_group("gloo")
device = torch.device("cpu")


@torch.no_grad()
def evaluated(strategy):
    """What two evaluations give, with ones in all weights and then with twos."""

    def wrap(module):
        return FSDP(module, device_id=device, sharding_strategy=strategy)

    inner = wrap(torch.nn.Linear(4, 4, bias=False))
    model = wrap(torch.nn.Sequential(inner, torch.nn.Linear(4, 4, bias=False)))
    found = []
    for value in (1.0, 2.0):
        for shard in model.parameters():
            shard.fill_(value)
        found.append(model(torch.ones(1, 4)).sum().item())
    return found


ones, twos = evaluated(ShardingStrategy.FULL_SHARD)
kept = evaluated(ShardingStrategy.SHARD_GRAD_OP)
fresh = 4 * 4 * 4 * 2.0 * 2.0
if dist.get_rank() == 0:
    print(f"ones = {ones}\ntwos = {twos}\ntwos_if_both_were_seen = {fresh}")
    print(f"shard_grad_op = {kept}")
dist.destroy_process_group()
