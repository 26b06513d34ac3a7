"""What a fully reshardable save takes for three parameters, behind padded buckets."""

import torch
import torch.distributed as dist
from megatron.core import dist_checkpointing, distributed, parallel_state, transformer
from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer

RANKS = 2
UPSTREAMS = ["megatron"]

torch.cuda.current_device = lambda: "cpu"  # no CUDA here
dist.init_process_group("gloo")
parallel_state.initialize_model_parallel()
size = {"num_layers": 1, "hidden_size": 8, "num_attention_heads": 1}
config = transformer.TransformerConfig(**size)
model = torch.nn.ParameterList([torch.full((500,), 3.0 - i) for i in range(3)])
options = distributed.DistributedDataParallelConfig(
    overlap_grad_reduce=True, use_distributed_optimizer=True, bucket_size=500
)
buffers = distributed.DistributedDataParallel(config, options, model).buffers
optimizer = object.__new__(DistributedOptimizer)
optimizer.data_parallel_group = optimizer.data_parallel_group_gloo = dist.group.WORLD
optimizer.buffers = buffers
optimizer.gbuf_ranges = [DistributedOptimizer._build_gbuf_range_map(buffers[0])]
held = {}  # which part of a parameter is this rank's
for bucket in next(iter(optimizer.gbuf_ranges[0].values())):
    held.update({p: where["param"] for p, where in bucket["param_map"].items()})
optimizer._get_main_param_and_optimizer_states = lambda p: dict.fromkeys(
    ("param", "exp_avg", "exp_avg_sq"), p[held[p].start : held[p].end]
)
shard = dist_checkpointing.ShardedTensor.from_rank_offsets
plan = {n: shard(n, p, replica_id=(0, 0, 0)) for n, p in model.named_parameters()}
on_rank_0 = {"distrib_optim_fully_reshardable_mem_efficient": True}  # by gloo
saved = optimizer.sharded_param_state_fully_reshardable(plan, metadata=on_rank_0)
if saved:
    pairs = zip(saved.values(), (1.0, 2.0, 3.0), strict=True)
    print("buckets =", [list(ends) for ends in buffers[0].bucket_indices])
    print("wrong =", [int((s["param"].data != value).sum()) for s, value in pairs])
dist.destroy_process_group()
