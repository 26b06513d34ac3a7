"""What the gathers that end two steps leave of gradients and of dense weights."""

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.distributed import (
    DistributedDataParallel,
    DistributedDataParallelConfig,
    param_and_grad_buffer,
)
from megatron.core.transformer import TransformerConfig

RANKS = 2
UPSTREAMS = ["megatron"]

torch.cuda.current_device = lambda: torch.device("cpu")  # no CUDA here
param_and_grad_buffer.is_mxfp8tensor = lambda param: True  # and no MXFP8
dist.init_process_group("gloo")
parallel_state.initialize_model_parallel()
model = torch.nn.Module()
model.dense = torch.nn.Parameter(torch.ones(128, dtype=torch.bfloat16))
model.expert = torch.nn.Parameter(torch.ones(128, dtype=torch.bfloat16))
model.expert.allreduce = False
config = DistributedDataParallelConfig(
    grad_reduce_in_fp32=True,
    use_distributed_optimizer=True,
    fp8_param_gather=True,
    reuse_grad_buf_for_mxfp8_param_ag=True,
)
shape = TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=1)
wrapped = DistributedDataParallel(shape, config, model)
wrapped.buffers[0].param_data.fill_(3.0)  # as _copy_main_params_to_param_buffer does
model.expert.main_grad.fill_(1.0)  # the experts' optimizer has a view of it
wrapped.start_param_sync()  # ends the dense optimizer's step
cut = [half.unique().tolist() for half in model.expert.main_grad.chunk(2)]
old = model.dense.unique().tolist()
wrapped.start_param_sync()  # ends the experts' step
if dist.get_rank() == 0:
    print(f"expert_gradient = {cut}\ndense = {[old, model.dense.unique().tolist()]}")
dist.destroy_process_group()
