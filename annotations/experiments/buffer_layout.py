"""Where parameters and buckets lie in a gradient buffer, and what the hook leaves."""

import json

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state, transformer

RANKS = 1
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
sizes = {"num_layers": 1, "hidden_size": 8, "num_attention_heads": 1}
config = transformer.TransformerConfig(**sizes)


def wrapped(shared=False, **given):
    sizes = (9, 10), (10, 3), (3, 33)
    layers = [torch.nn.Linear(*size, bias=False) for size in sizes]
    layers[0].weight.shared_embedding = shared
    given |= {"use_distributed_optimizer": True, "grad_reduce_in_fp32": True}
    options = distributed.DistributedDataParallelConfig(**given)
    model = torch.nn.Sequential(*layers).to(torch.bfloat16)
    return distributed.DistributedDataParallel(config, options, model)


plain, shared = ("plain_starts", "plain_buckets"), ("shared_starts", "shared_buckets")
for first, second in plain, shared:
    buffer = wrapped(first == "shared_starts").buffers[0]
    starts = [buffer.param_index_map[p][0] for p in buffer.params]
    print(f"{first} = {starts}\n{second} = {json.dumps(buffer.bucket_indices)}")
high = wrapped(pad_buckets_for_high_nccl_busbw=True).buffers[0]
ddp = wrapped(overlap_grad_reduce=True)
ddp(torch.ones(1, 9, dtype=torch.bfloat16)).sum().backward()
first = ddp.module[0].weight
print(f'grad = {json.dumps(first.grad)}\nmain_grad = "{first.main_grad.dtype}"')
print(f"padded = {high.numel}\nbucket_size = {ddp.ddp_config.bucket_size}")
print("without_overlap =", json.dumps(wrapped().ddp_config.bucket_size))
print("norm_by_torch =", torch.nn.utils.clip_grad_norm_(ddp.parameters(), 1).item())
