"""Into how many buckets and groups the gradients of each pipeline stage go."""

import json

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel as DDP
from megatron.core.distributed import DistributedDataParallelConfig
from megatron.core.transformer import TransformerConfig

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(1, 2, create_gloo_process_groups=False)
config = TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=1)


def counts(**given):
    layers = [torch.nn.Linear(8, 8, bias=False) for _ in range(4)]
    layers[0].weight.shared_embedding = True
    model = torch.nn.Sequential(*layers, torch.nn.Linear(8, 8).to(torch.bfloat16))
    options = DistributedDataParallelConfig(
        overlap_grad_reduce=True, use_distributed_optimizer=True, bucket_size=64
    )
    ddp = DDP(config, options, model, **given)
    mine = [sum(len(b.buckets) for b in ddp.buffers), len(ddp.bucket_groups)]
    both = [None, None]
    dist.all_gather_object(both, mine)
    return both


usual, disabled = "usual_stage_0 usual_stage_1", "disabled_stage_0 disabled_stage_1"
for names, given in (usual, {}), (disabled, {"disable_bucketing": True}):
    found = counts(**given)
    if dist.get_rank() == 0:
        for name, counted in zip(names.split(), found, strict=True):
            print(f"{name} = {json.dumps(counted)}")
dist.destroy_process_group()
