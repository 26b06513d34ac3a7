"""Which wrong parameters Megatron's hashes of replicas let pass, on two ranks."""

import json

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state, transformer
from megatron.core.utils import check_param_hashes_across_dp_replicas as check

RANKS = 2
UPSTREAMS = ["megatron"]

sizes = {"num_layers": 1, "hidden_size": 8, "num_attention_heads": 1}
config = transformer.TransformerConfig(**sizes)
dist.init_process_group("gloo")
rank, found = dist.get_rank(), []
torch.Tensor.cuda = lambda self: self
torch.cuda.current_device = lambda: "cpu"
for tp in (1, 2):
    parallel_state.initialize_model_parallel(tp, create_gloo_process_groups=False)
    norm = torch.nn.LayerNorm(8)
    if tp == 2:
        norm.bias.data[0] = rank  # a whole copy on each rank, and not the same
    else:
        options = distributed.DistributedDataParallelConfig()
        ddp = distributed.DistributedDataParallel(config, options, norm)
        ddp(torch.ones(2, 8)).sum().backward()
        norm.bias.main_grad[0] += 1000 * rank  # rank 1 is wrong
        ddp.finish_grad_sync()
        norm.bias.data -= 0.1 * norm.bias.main_grad
    group, value = parallel_state.get_data_parallel_group(), norm.bias.data[0].item()
    found.append([group.size(), check([norm], cross_check=True), round(value)])
    parallel_state.destroy_model_parallel()
both = [None, None]
dist.all_gather_object(both, found)
if rank == 0:
    for name, one, other in zip(("wrong_gradient", "norm_apart"), *both, strict=True):
        print(name, "=", json.dumps([one, other]))
