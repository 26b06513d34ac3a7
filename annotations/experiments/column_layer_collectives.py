"""What a column and a row layer send, and whether f runs, on two ranks."""

import json
from unittest.mock import patch

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.model_parallel_config import ModelParallelConfig
from megatron.core.tensor_parallel import layers, mappings

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(2, create_gloo_process_groups=False)
real, sent = dist.all_reduce, []


def noted(tensor, *args, **kwargs):
    sent.append("async" if kwargs.get("async_op") else "sync")
    return real(tensor, *args, **kwargs)


config = ModelParallelConfig(tensor_model_parallel_size=2, use_cpu_initialization=True)
ones = torch.nn.init.ones_
given = {"config": config, "init_method": ones, "bias": True, "skip_bias_add": False}
column = layers.ColumnParallelLinear(4, 8, gather_output=False, **given)
row = layers.RowParallelLinear(8, 4, input_is_parallel=True, **given)
ones(row.bias)
f = patch.object(mappings._CopyToModelParallelRegion, "apply")
with f as called, patch.object(dist, "all_reduce", noted):
    output = row(column(torch.ones(1, 1, 4, requires_grad=True))[0])[0]
    forward = list(sent)
    output.sum().backward()
if dist.get_rank() == 0:
    print(f"forward = {json.dumps(forward)}\nbackward =", json.dumps(sent[1:]))
    print(f"f_was_called = {json.dumps(called.called)}")
    print(f"output_with_a_bias_of_one = {json.dumps(output[0, 0, 0].item())}")
dist.destroy_process_group()
