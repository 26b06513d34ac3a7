"""A row-parallel product of two ranks: its bias of 2 added after the sum, or before."""

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.model_parallel_config import ModelParallelConfig
from megatron.core.tensor_parallel import layers, mappings

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(2, create_gloo_process_groups=False)
row = layers.RowParallelLinear(
    8,
    4,
    config=ModelParallelConfig(
        tensor_model_parallel_size=2, use_cpu_initialization=True
    ),
    init_method=torch.nn.init.ones_,
    bias=True,
    skip_bias_add=False,
    input_is_parallel=True,
)
part = torch.ones(1, 1, 4)  # a rank's half of eight features
without = row(part)[0]
torch.nn.init.constant_(row.bias, 2)
after = row(part)[0]
group = parallel_state.get_tensor_model_parallel_group()
partial = torch.nn.functional.linear(part, row.weight) + row.bias
on_each = mappings.reduce_from_tensor_model_parallel_region(partial, group=group)
if dist.get_rank() == 0:
    for name in ("without", "after", "on_each"):
        print(name, "=", globals()[name][0, 0, 0].item())
dist.destroy_process_group()
