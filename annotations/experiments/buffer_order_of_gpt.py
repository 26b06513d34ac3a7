"""In which order gradients lie in Megatron's buffer, and in which they come."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state, tensor_parallel, transformer
from megatron.core.models.gpt import GPTModel, gpt_layer_specs

RANKS = 1
UPSTREAMS = ["megatron"]
NORM = {"normalization": "RMSNorm"}

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
tracker = SimpleNamespace(fork=nullcontext)  # no CUDA here
tensor_parallel.get_cuda_rng_tracker = lambda: tracker
given = {"num_layers": 1, "hidden_size": 8, "num_attention_heads": 2}
given |= {"use_cpu_initialization": True, "add_bias_linear": False, **NORM}
config = transformer.TransformerConfig(**given)
spec = gpt_layer_specs.get_gpt_layer_local_spec(**NORM)
model = GPTModel(config, spec, 16, 4, share_embeddings_and_output_weights=False)
names = {p: name.split(".")[-2] for name, p in model.named_parameters()}
come = []
for weight, name in names.items():
    take = lambda _, name=name: come.append(name)  # noqa: E731
    weight.register_post_accumulate_grad_hook(take)
options = distributed.DistributedDataParallelConfig(overlap_grad_reduce=True)
ddp = distributed.DistributedDataParallel(config, options, model)
places = ddp.buffers[0].param_index_map
lie = [names[weight] for weight in sorted(places, key=lambda p: places[p][0])]
tokens, mask = torch.arange(4)[None], torch.ones(1, 1, 4, 4).triu(1).bool()
ddp(tokens, tokens, mask, labels=tokens).sum().backward()
print("lie =", json.dumps(lie))
print("come =", json.dumps(come))
dist.destroy_process_group()
