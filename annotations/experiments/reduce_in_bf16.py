"""What core's DDP adds up over microbatches whose gradients are all 1, in bf16."""

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state, transformer

RANKS = 1
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
sizes = {"num_layers": 1, "hidden_size": 8, "num_attention_heads": 1}
config = transformer.TransformerConfig(**sizes)
for wide, figure in (False, "in_bf16"), (True, "in_fp32"):
    options = distributed.DistributedDataParallelConfig(grad_reduce_in_fp32=wide)
    layer = torch.nn.Linear(1, 1, bias=False, dtype=torch.bfloat16)
    model = distributed.DistributedDataParallel(config, options, layer)
    sums = []
    for microbatch in range(512):
        model(torch.ones(1, 1, dtype=torch.bfloat16)).sum().backward()
        if microbatch in (127, 255, 511):
            sums.append(layer.weight.main_grad.item())
    print(figure, "=", sums)
dist.destroy_process_group()
