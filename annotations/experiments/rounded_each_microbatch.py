"""What an fp32 gradient buffer holds of bf16 gradients that were rounded before."""

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state, transformer

RANKS = 1
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
sizes = {"num_layers": 1, "hidden_size": 8, "num_attention_heads": 1}
config = transformer.TransformerConfig(**sizes)
options = distributed.DistributedDataParallelConfig(grad_reduce_in_fp32=True)
layer = torch.nn.Linear(1, 1, bias=False).bfloat16()
ddp = distributed.DistributedDataParallel(config, options, layer)
tokens = torch.tensor([[256.0], [1.0]], dtype=torch.bfloat16)
for _microbatch in range(4):
    ddp(tokens).sum().backward()
print("held =", layer.weight.main_grad.item())
print("exact =", 4 * tokens.double().sum().item())
dist.destroy_process_group()
