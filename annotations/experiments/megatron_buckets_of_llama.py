"""How Megatron's buckets fall on its own model of Llama 3 8B, by data-parallel size."""

import json

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state, transformer
from megatron.core.models.gpt import GPTModel, gpt_layer_specs
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1
UPSTREAMS = ["megatron"]
NORM = {"normalization": "RMSNorm"}

torch.cuda.current_device = lambda: "meta"  # shapes alone
sizes = {"num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
sizes |= {"num_query_groups": 8, "ffn_hidden_size": 14336, "add_bias_linear": False}
given = {"use_cpu_initialization": True, "perform_initialization": False, **NORM}
silu = torch.nn.functional.silu
config = transformer.TransformerConfig(
    **sizes, **given, gated_linear_unit=True, activation_func=silu
)
spec = gpt_layer_specs.get_gpt_layer_local_spec(**NORM)
buckets, last, largest = {}, {}, {}
for ranks in 8, 64, 256, 1024:
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
    with torch.device("meta"):
        model = GPTModel(config, spec, 128256, 8192, position_embedding_type="rope",
                         share_embeddings_and_output_weights=False)  # fmt: skip
    options = distributed.DistributedDataParallelConfig(overlap_grad_reduce=True)
    ddp = distributed.DistributedDataParallel(config, options, model)
    found = [b.numel_unpadded for b in ddp.buffers[0].buckets]
    buckets[ranks], last[ranks], largest[ranks] = len(found), found[-1], max(found)
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()
print("parameters =", sum(found))
for name, figure in ("buckets", buckets), ("last", last), ("largest", largest):
    print(name, "=", json.dumps(figure))
