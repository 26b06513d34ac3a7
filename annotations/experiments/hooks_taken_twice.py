"""What comes of taking the hooks of overlapped gathers away while they are away."""

import json

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state, transformer

RANKS = 1
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
sizes = {"num_layers": 1, "hidden_size": 8, "num_attention_heads": 1}
given = {"use_distributed_optimizer": True, "overlap_param_gather": True}
options = distributed.DistributedDataParallelConfig(**given, overlap_grad_reduce=True)
ddp = distributed.DistributedDataParallel(
    transformer.TransformerConfig(**sizes), options, torch.nn.Linear(8, 8)
)


def told(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "nothing"


before_the_first_step = told(lambda: ddp.disable_forward_pre_hook(param_sync=False))
print("before_the_first_step =", json.dumps(before_the_first_step))
print("at_the_evaluation =", json.dumps(told(ddp.disable_forward_pre_hook)))
dist.destroy_process_group()
