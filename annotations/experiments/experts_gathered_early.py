"""What the dense optimizer's gather leaves of an expert's gradient in its buffer."""

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
model.dense = torch.nn.Parameter(torch.ones(64, dtype=torch.bfloat16))
model.expert = torch.nn.Parameter(torch.ones(64, dtype=torch.bfloat16))
model.expert.allreduce = False
config = DistributedDataParallelConfig(
    grad_reduce_in_fp32=True,
    use_distributed_optimizer=True,
    fp8_param_gather=True,
    reuse_grad_buf_for_mxfp8_param_ag=True,
)
shape = TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=1)
wrapped = DistributedDataParallel(shape, config, model)
model.expert.main_grad.fill_(0.25)
# As _copy_model_grads_to_main_grads hands it to the experts' optimizer.
shard = model.expert.main_grad.view(-1).chunk(RANKS)[dist.get_rank()].float()
before = shard.unique().tolist()
wrapped.start_param_sync()  # ends the dense optimizer's step
if dist.get_rank() == 0:
    print(f"before = {before}\nafter = {shard.unique().tolist()}")
dist.destroy_process_group()
