"""What a gradient buffer holds after its reduce-scatter, and after an all-reduce."""

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
parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
config = TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=1)
options = DistributedDataParallelConfig(use_distributed_optimizer=True)
ddp = DDP(config, options, torch.nn.Linear(16, 16, bias=False))
group = ddp.bucket_groups[0]
bucket = group.buckets[0]
for name, whole in ("reduce_scatter", False), ("all_reduce", True):
    # Ranks hold 2 and 4: the mean over both is 3.
    bucket.grad_data.fill_(2.0 * (dist.get_rank() + 1))
    group.start_grad_sync(force_all_reduce=whole)
    if dist.get_rank() == 0:
        print(f"{name} = {json.dumps([bucket.grad_data[i].item() for i in (0, 255)])}")
output = group.cached_grad_buffer_shard_list[0][dist.get_rank()]
storages = {t.untyped_storage().data_ptr() for t in (bucket.grad_data, output)}
if dist.get_rank() == 0:
    print(f"elements_kept = {bucket.grad_data.numel()}")
    print(f"storages_of_output_and_bucket = {len(storages)}")
    print(f"scaled_by = {json.dumps(bucket.gradient_scaling_factor)}")
dist.destroy_process_group()
