"""What the sum over a stage's pieces makes of an embedder that each of them holds."""

import json
from types import SimpleNamespace

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state
from megatron.core.transformer import TransformerConfig

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
config = TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=1)
config.has_cond_embedder, rank = True, dist.get_rank()
stages, whole = SimpleNamespace(size=lambda: 2), dist.all_reduce
final = distributed.finalize_model_grads.__globals__  # the module of that function


def piece(behind, marked):
    given = {"time": torch.zeros(256), "x": torch.zeros(behind)}
    model = torch.nn.ParameterDict(given)
    model.time.pipeline_parallel, model.time.shared_embedding = True, marked
    options = distributed.DistributedDataParallelConfig(use_distributed_optimizer=True)
    return distributed.DistributedDataParallel(config, options, model)


for name, marked in ("unmarked", False), ("marked", True):
    pieces = [piece(64, marked), piece(192, marked)]
    for each in pieces:
        each.module.time.main_grad.fill_(1.0 + rank)  # the mean is 1.5
        each.finish_grad_sync()
    dist.all_reduce = lambda *_, **__: None  # the other stage adds nothing
    final["_allreduce_conditional_embedding_grads"](pieces, config, stages)
    dist.all_reduce, both = whole, [None, None]
    dist.all_gather_object(both, pieces[0].module.time.main_grad[[0, 100]].tolist())
    if rank == 0:  # it owns element 0 of both pieces, and 100 of the first, or both
        print(f"{name} = {json.dumps(both)}")
