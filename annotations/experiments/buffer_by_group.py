"""What the size of the data-parallel group decides about buckets, on fake groups."""

import json

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state, transformer
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1
UPSTREAMS = ["megatron"]

config = transformer.TransformerConfig(
    num_layers=1, hidden_size=8, num_attention_heads=1
)


def wrapped(fp32):
    given = {"overlap_grad_reduce": True, "grad_reduce_in_fp32": fp32}
    options = distributed.DistributedDataParallelConfig(
        use_distributed_optimizer=True, **given
    )
    model = torch.nn.Linear(9, 10, bias=False).to(torch.bfloat16)
    return distributed.DistributedDataParallel(config, options, model)


for name, size in ("five", 5), ("forty", 40), ("fifty", 50):
    dist.init_process_group("fake", rank=0, world_size=size, store=FakeStore())
    parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
    ddp = wrapped(True)
    end, data = ddp.buffers[0].bucket_indices[-1][1], ddp.buffers[0].grad_data
    figures = {"bucket_size": ddp.ddp_config.bucket_size, "bucket_end": end}
    shards = distributed.param_and_grad_buffer.shard_buffer(data, size)
    print(name, "=", json.dumps(figures))
    widths = [
        wrapped(kind).buffers[0].grad_data.element_size() for kind in (True, False)
    ]
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()
print(f"bytes_per_gradient = {widths}\nshard_sizes = {sorted(set(map(len, shards)))}")
