"""In which steps the forward has fp8 weights transposed anew, one behind a save."""

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state
from megatron.core.transformer import TransformerConfig

RANKS = 2
UPSTREAMS = ["megatron"]

torch.cuda.current_device = lambda: torch.device("cpu")  # no CUDA here
dist.init_process_group("gloo")
parallel_state.initialize_model_parallel()
layer = torch.nn.Linear(128, 1, bias=False)
config = distributed.DistributedDataParallelConfig(
    use_distributed_optimizer=True, overlap_param_gather=True, fp8_param_gather=True
)
shape = TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=1)
wrapped = distributed.DistributedDataParallel(shape, config, layer)
transposed, buffers = [], distributed.param_and_grad_buffer
buffers.is_float8tensor = lambda param: True  # as if the weight were fp8
buffers.post_all_gather_processing = lambda params: transposed.append(len(params))
seen = []
for step in range(4):
    wrapped.zero_grad_buffer()
    wrapped(torch.ones(1, 128)).sum().backward()
    wrapped.finish_grad_sync()
    seen.append(len(transposed))
    transposed.clear()
    if step == 1:
        wrapped.start_param_sync(force_sync=True)  # as a save does
        seen[-1] += len(transposed)
if dist.get_rank() == 0:
    print(f"transposed = {seen}")
dist.destroy_process_group()
