"""How much a rank of Llama 3 8B sends to the check of a save's layout."""

import pickle

import torch
import torch.distributed as dist
from megatron.core import parallel_state, transformer
from megatron.core.dist_checkpointing import state_dict_utils
from megatron.core.models.gpt import GPTModel, gpt_layer_specs

RANKS = 1
UPSTREAMS = ["megatron"]
NORM = {"normalization": "RMSNorm"}

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
sizes = {"num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
sizes |= {"num_query_groups": 8, "ffn_hidden_size": 14336, "add_bias_linear": False}
given = {"use_cpu_initialization": True, "perform_initialization": False, **NORM}
silu = torch.nn.functional.silu
config = transformer.TransformerConfig(
    **sizes, **given, gated_linear_unit=True, activation_func=silu
)
spec = gpt_layer_specs.get_gpt_layer_local_spec(**NORM)
with torch.device("meta"):
    model = GPTModel(config, spec, 128256, 8192, position_embedding_type="rope",
                     share_embeddings_and_output_weights=False)  # fmt: skip
sent = []


def gather(received, given, group=None):
    sent.append((len(given), len(pickle.dumps(given))))
    received[:] = [given]


dist.all_gather_object = gather
state_dict_utils.save_preprocess(model.sharded_state_dict())
print(f"shards = {sent[0][0]}\nbytes = {sent[0][1]}\ngathers = {len(sent)}")
