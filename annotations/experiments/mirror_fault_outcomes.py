"""What two faults leave as it was: DDP that never sends, ZeRO that shards no state."""

import json

import torch
import torch.distributed as dist

from mini_impls import model, zero
from mini_impls.ddp import DistributedDataParallel

RANKS = 2
UPSTREAMS = ["minis"]
dist.init_process_group("gloo")
group, rank, config = dist.group.WORLD, dist.get_rank(), model.GPTConfig()
batches = [model.make_batch(config, step=i, batch_size=8) for i in range(8)]


def train(gpt, optimizer):
    rows = [model.shard_batch(batch, rank=rank, world_size=2) for batch in batches]
    losses = model.train_one_process(gpt, optimizer, rows)
    weight = next(gpt.parameters()).detach()
    both = [torch.empty_like(weight) for _ in range(2)]
    dist.all_gather(both, weight)
    falls, equal = losses[-1] < losses[0], torch.equal(*both)
    return {"loss_falls": falls, "ranks_equal": equal}, losses


ddp = DistributedDataParallel(model.build_model(config), group)
ddp.is_last_microbatch = False
drift, _ = train(ddp, torch.optim.AdamW(ddp.parameters(), 3e-3))
seen, kept = [], []
for owned in (zero.ZeroStage1._owned, lambda self, params: list(params)):
    zero.ZeroStage1._owned, gpt = owned, model.build_model(config)
    optimizer = zero.ZeroStage1(gpt.parameters(), torch.optim.AdamW, group, lr=3e-3)
    seen.append(train(gpt, optimizer))
    kept.append(len(optimizer.optim.state))
if rank == 0:
    print("never_sent =", json.dumps(drift), "\nparameters_with_state =", kept)
    print("same_losses =", json.dumps(seen[0] == seen[1]))
dist.destroy_process_group()
