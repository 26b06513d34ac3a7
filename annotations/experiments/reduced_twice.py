"""What a second start leaves of a gradient, with one and two optimizer instances."""

from contextlib import nullcontext
from types import SimpleNamespace as Made

import torch
import torch.distributed as dist
from megatron.core import distributed, transformer

RANKS = 2
UPSTREAMS = ["megatron"]

stream = Made(wait_stream=lambda other: None)  # no CUDA here
torch.cuda.Stream = torch.cuda.default_stream = lambda **given: stream
torch.cuda.stream = lambda given: nullcontext()
torch.cuda.current_device = lambda: "cpu"
dist.init_process_group("gloo")
whole, rank = dist.group.WORLD, dist.get_rank()
alone = [dist.new_group([number]) for number in range(2)][rank]
groups = Made(dp=whole, dp_cp=whole, expt_dp=whole, tp=alone, pp=alone, ep=alone)
# Of two instances each rank has the other in its own; the one beside it is left out.
groups.intra_dp_cp = groups.intra_expt_dp = groups.intra_dist_opt = whole
groups.inter_dist_opt = alone
config = transformer.TransformerConfig(
    num_layers=1, hidden_size=4, num_attention_heads=1
)
for name, instances in ("one_instance", 1), ("two_instances", 2):
    options = distributed.DistributedDataParallelConfig(
        overlap_grad_reduce=True, use_distributed_optimizer=True,
        num_distributed_optimizer_instances=instances,
    )  # fmt: skip
    layer = torch.nn.Linear(32, 4, bias=False)
    ddp = distributed.DistributedDataParallel(config, options, layer, False, groups)
    with ddp.no_sync():  # as a schedule that starts reductions itself
        ddp(torch.ones(1, 32)).sum().backward()
    ddp.start_grad_sync()
    ddp.finish_grad_sync()
    print(f"{name} =", layer.weight.main_grad[0, 0].item())
dist.destroy_process_group()
