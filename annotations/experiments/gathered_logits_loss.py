"""The vocabulary-parallel loss of logits that were gathered before, on two ranks."""

import json
import math

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.tensor_parallel import vocab_parallel_cross_entropy

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(2, create_gloo_process_groups=False)
torch.manual_seed(1)
logits, target = torch.randn(1, 1, 16), torch.tensor([[3]])
shard = logits.chunk(2, -1)[dist.get_rank()]

right = vocab_parallel_cross_entropy(shard.clone(), target).item()
gathered = vocab_parallel_cross_entropy(logits.clone(), target).item()
if dist.get_rank() == 0:
    print(f"difference = {json.dumps(round(gathered - right, 4))}")
    print(f"log_2 = {json.dumps(round(math.log(2), 4))}")
dist.destroy_process_group()
