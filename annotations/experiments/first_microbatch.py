"""Which forwards Megatron calls those of a first microbatch, over two steps."""

import json

import torch
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.module import MegatronModule

UPSTREAMS = ["megatron"]


class Layer(torch.nn.Module):
    """Has the flag of Megatron's wrappers, and clears it as they do."""

    def __init__(self):
        super().__init__()
        self.is_first_microbatch = True

    def forward(self):
        first, self.is_first_microbatch = self.is_first_microbatch, False
        return first


def flags(**options):
    sizes = {"num_layers": 1, "hidden_size": 8, "num_attention_heads": 2}
    model = MegatronModule(TransformerConfig(**sizes, **options))
    model.layer = Layer()
    steps = []
    for _ in range(2):
        model.set_is_first_microbatch()  # as the schedules do, before a step's first
        steps.append([model.layer(), model.layer()])
    return steps


print(f"bf16 = {json.dumps(flags(bf16=True))}")
print(f"fp8 = {json.dumps(flags(bf16=True, fp8='hybrid'))}")
