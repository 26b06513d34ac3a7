"""What the two native vocabulary-parallel losses send, in bytes per token."""

from unittest.mock import patch

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.fusions import fused_cross_entropy
from megatron.core.tensor_parallel import vocab_parallel_cross_entropy

RANKS = 2
UPSTREAMS = ["megatron"]

torch._dynamo.config.disable = True  # The fused loss is compiled else.
dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(2, create_gloo_process_groups=False)
real, sent = dist.all_reduce, []
target = torch.zeros(6, 1, dtype=torch.long)


def counted(tensor, *args, **kwargs):
    sent.append(tensor.numel() * tensor.element_size() // 6)
    return real(tensor, *args, **kwargs)


def collectives(loss):
    sent.clear()
    logits = torch.ones(6, 1, 8, dtype=torch.bfloat16, requires_grad=True)
    with patch.object(dist, "all_reduce", counted):
        loss(logits.clone(), target).sum().backward()
    return list(sent)


plain = collectives(vocab_parallel_cross_entropy)
fused_loss = fused_cross_entropy.fused_vocab_parallel_cross_entropy
fused = collectives(lambda x, y: fused_loss(x, y, dist.group.WORLD))
vocab_parallel_cross_entropy(fp32 := torch.zeros(6, 1, 8), target)
print(f"plain = {plain}\nfused = {fused}")
print("fp32_logits_of_zero_afterwards =", fp32[0, 0, 0].item())
dist.destroy_process_group()
