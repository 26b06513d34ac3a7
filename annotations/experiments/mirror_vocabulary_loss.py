"""What the loss does to the caller's logits: Megatron's, and the mini's."""

import json

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.tensor_parallel.cross_entropy import vocab_parallel_cross_entropy

from mini_impls import vocab_parallel_loss as mini

RANKS = 2
UPSTREAMS = ["megatron", "minis"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(2)
sides = {
    "megatron": vocab_parallel_cross_entropy,
    "mini": lambda *args: mini.vocab_parallel_cross_entropy(*args, dist.group.WORLD),
}
losses = []
for side, loss in sides.items():
    kept = []
    for dtype in (torch.float32, torch.bfloat16):
        logits = torch.arange(4.0).view(1, 1, 4).to(dtype) + dist.get_rank()
        before = logits.clone()
        losses.append(round(loss(logits, torch.tensor([[5]])).item(), 5))
        kept.append(torch.equal(logits, before))
    print(f"{side} = {json.dumps(kept)}" * (dist.get_rank() == 0))
dist.destroy_process_group()
