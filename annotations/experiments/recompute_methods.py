"""Which layers `_checkpointed_forward` calls, with a padding mask and without."""

import json
from types import SimpleNamespace

from megatron.core import tensor_parallel
from megatron.core.transformer.transformer_block import TransformerBlock

RANKS = 1
UPSTREAMS = ["megatron"]
called = {}
CONFIG = {"fp8": None, "fp4": None, "distribute_saved_activations": False}


class Layer:
    def __init__(self, number):
        self.number = number

    def __call__(self, hidden_states, padding_mask, **rest):
        called["with" if padding_mask else "without"].append(self.number)
        return hidden_states, None


def forward(method, count, layers=5):
    called.update({"with": [], "without": []})
    given = {"recompute_method": method, "recompute_num_layers": count}
    block = SimpleNamespace(config=SimpleNamespace(**CONFIG, **given))
    block.num_layers_per_pipeline_rank = layers
    block._get_layer = [Layer(number) for number in range(layers)].__getitem__
    try:
        TransformerBlock._checkpointed_forward(block, "h", *[None] * 6, False, "mask")
    except IndexError:
        return "IndexError"
    return called


tensor_parallel.checkpoint = lambda f, _, *args: f(*args)
print(f"uniform_1 = {json.dumps(forward('uniform', 1))}")
print(f"uniform_2 = {json.dumps(forward('uniform', 2))}")
print(f"block_2 = {json.dumps(forward('block', 2))}")
