"""What Megatron makes of `cp_comm_type` as a word, as a list, and as a longer list."""

import json

import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.transformer import ModuleSpec, TransformerConfig, TransformerLayer
from megatron.core.transformer.identity_op import IdentityOp
from megatron.core.transformer.transformer_layer import TransformerLayerSubmodules

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(
    context_parallel_size=2, create_gloo_process_groups=False
)
given = []


class Attention(IdentityOp):
    def __init__(self, *_args, cp_comm_type=None, **_kwargs):
        super().__init__()
        given.append(cp_comm_type)


for name, words in (("word", "a2a"), ("list", ["a2a", "p2p"]), ("longer", ["p2p"] * 3)):
    given.clear()
    sizes = {"num_layers": 2, "hidden_size": 8, "num_attention_heads": 2}
    try:
        config = TransformerConfig(**sizes, context_parallel_size=2, cp_comm_type=words)
        parts = TransformerLayerSubmodules(self_attention=ModuleSpec(module=Attention))
        for number in (1, 2):
            TransformerLayer(config, parts, layer_number=number)
    except (AssertionError, IndexError) as error:
        given.append(type(error).__name__)
    if dist.get_rank() == 0:
        print(f"{name} = {json.dumps(given)}")
