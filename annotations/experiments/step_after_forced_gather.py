"""The weights a step sees behind a forced gather, and if its gradients are clean."""

import json

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state
from megatron.core.transformer import TransformerConfig

RANKS = 2
UPSTREAMS = ["megatron"]

torch.cuda.current_device = lambda: torch.device("cpu")  # no CUDA here
distributed.param_and_grad_buffer.is_mxfp8tensor = lambda param: True  # and no MXFP8
dist.init_process_group("gloo")
parallel_state.initialize_model_parallel()
layer = torch.nn.Linear(128, 1, bias=False, dtype=torch.bfloat16)
config = distributed.DistributedDataParallelConfig(
    grad_reduce_in_fp32=True,
    use_distributed_optimizer=True,
    overlap_param_gather=True,
    fp8_param_gather=True,
    reuse_grad_buf_for_mxfp8_param_ag=True,
)
shape = TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=1)
wrapped = distributed.DistributedDataParallel(shape, config, layer)
own, trained = wrapped.buffers[0].param_data.chunk(2)[dist.get_rank()], []
for step in (1.0, 2.0, 3.0, 4.0):
    wrapped.zero_grad_buffer()
    own.fill_(step)  # as train_step does, by _copy_main_params_to_param_buffer
    wrapped(torch.ones(1, 128, dtype=torch.bfloat16)).sum().backward()
    wrapped.finish_grad_sync()
    clean = layer.weight.main_grad.view(-1).chunk(2)[dist.get_rank()].eq(1).all().item()
    trained.append([step, layer.weight.max().item(), clean])
    if step == 2.0:  # an evaluation: its weights are those of the last forward
        wrapped.disable_forward_pre_hook()
        wrapped.enable_forward_pre_hook()
if dist.get_rank() == 0:
    print("given_seen_clean =", json.dumps(trained))
dist.destroy_process_group()
