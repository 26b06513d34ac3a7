"""What the last of 1024 ranks of Llama 3 8B sends to the three gathers of a save."""

import pickle
from dataclasses import replace

import torch
import torch.distributed as dist
from megatron.core import parallel_state, transformer
from megatron.core.dist_checkpointing import state_dict_utils
from megatron.core.dist_checkpointing.strategies import fully_parallel
from megatron.core.models.gpt import GPTModel, gpt_layer_specs
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1
UPSTREAMS = ["megatron"]
dist.init_process_group("fake", rank=1023, world_size=1024, store=FakeStore())
parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
sizes = {"num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
sizes |= {"num_query_groups": 8, "ffn_hidden_size": 14336, "gated_linear_unit": True}
how = dict(use_cpu_initialization=True, add_bias_linear=False, normalization="RMSNorm")
config = transformer.TransformerConfig(**sizes, **how)
spec = gpt_layer_specs.get_gpt_layer_local_spec(normalization="RMSNorm")
with torch.device("meta"):
    model = GPTModel(config, spec, 128256, 8192, position_embedding_type="rope")
sent = []


def gather(received, given, group=None):
    sent.append(len(pickle.dumps(given)))
    first = [replace(shard, replica_id=(0, 0, 0)) for shard in given]  # rank 0's
    received[:] = [first] + [given] * (len(received) - 1)


dist.all_gather_object = gather
dist.broadcast_object_list = lambda given, **_: given.__setitem__(0, {})
base = type("Base", (), {"backend": "torch_dist", "version": 1})
shards, _ = state_dict_utils.save_preprocess(model.sharded_state_dict())
whole = fully_parallel.FullyParallelSaveStrategyWrapper(base)
whole.apply_saving_parallelization(shards)
print(f"bytes = {sent}")
