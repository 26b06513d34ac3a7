"""Collectives of a column and a row layer in a step, an all-reduce counted as two."""

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.model_parallel_config import ModelParallelConfig
from megatron.core.tensor_parallel import layers, mappings

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(2, create_gloo_process_groups=False)
torch.cuda.current_device, sent = lambda: "cpu", []


def noted(function, units):
    def call(*args, **kwargs):
        sent.append(units)
        return function(*args, **kwargs)

    return call


dist.all_reduce = noted(dist.all_reduce, 2)
for name in "dist_all_gather_func", "dist_reduce_scatter_func":
    call = noted(getattr(layers, name), 1)
    setattr(layers, name, call), setattr(mappings, name, call)
ones = {"init_method": torch.nn.init.ones_, "bias": False, "skip_bias_add": False}
for name, on in ("plain", False), ("sequence", True):
    config = ModelParallelConfig(2, sequence_parallel=on, use_cpu_initialization=True)
    column = layers.ColumnParallelLinear(
        4, 8, gather_output=False, config=config, **ones
    )
    row = layers.RowParallelLinear(8, 4, input_is_parallel=True, config=config, **ones)
    sent.clear()
    row(column(torch.ones(2, 1, 4, requires_grad=True))[0])[0].sum().backward()
    if dist.get_rank() == 0:
        print(f"{name} = {sum(sent)}")
dist.destroy_process_group()
