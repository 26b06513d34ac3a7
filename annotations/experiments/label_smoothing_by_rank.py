"""The smoothed vocabulary-parallel loss on two ranks, beside torch on one."""

import json

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.tensor_parallel import vocab_parallel_cross_entropy
from torch.nn.functional import cross_entropy

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(2, create_gloo_process_groups=False)
rank = dist.get_rank()
torch.manual_seed(1)
logits, target = torch.randn(1, 1, 16), torch.tensor([[3]])
shard = logits.chunk(2, -1)[rank]

losses = {}
for smoothing in 0.0, 0.1:
    mine = vocab_parallel_cross_entropy(shard.clone(), target, smoothing).view(1)
    both = [torch.empty(1), torch.empty(1)]
    dist.all_gather(both, mine)
    losses[smoothing] = [round(loss.item(), 3) for loss in both]
whole = cross_entropy(logits.view(1, -1), target.view(1)).item()

if rank == 0:
    print(f"plain = {json.dumps(losses[0.0])}")
    print(f"plain_on_one_rank = {json.dumps(round(whole, 3))}")
    print(f"smoothed = {json.dumps(losses[0.1])}")
    print(f"smoothed_alike = {json.dumps(losses[0.1][0] == losses[0.1][1])}")
dist.destroy_process_group()
