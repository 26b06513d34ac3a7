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

losses = {}
for smoothing in 0.0, 0.1:
    leaf = logits.chunk(2, -1)[rank].clone().requires_grad_()
    mine = vocab_parallel_cross_entropy(leaf * 1.0, target, smoothing).view(1)
    mine.backward()
    both = [torch.empty(1), torch.empty(1)]
    dist.all_gather(both, mine.detach())
    losses[smoothing] = [round(loss.item(), 3) for loss in both]

one = logits.view(1, -1).requires_grad_()
loss = cross_entropy(one, target.view(1), label_smoothing=0.1 * 16 / 15)
loss.backward()
same = torch.allclose(one.grad.chunk(2, -1)[rank].flatten(), leaf.grad.flatten())

if rank == 0:
    print(f"smoothed_on_one_rank = {round(loss.item(), 3)}")
    print(f"gradient_is_that_of_one_rank = {json.dumps(same)}")
    plain = round(cross_entropy(one, target.view(1)).item(), 3)
    print(f"plain = {losses[0.0]}\nplain_on_one_rank = {plain}")
    print(f"smoothed = {losses[0.1]}")
dist.destroy_process_group()
