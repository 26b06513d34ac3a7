"""How wide core makes an MLP that no width was given, plain and gated."""

from megatron.core.transformer import TransformerConfig

RANKS = 1
UPSTREAMS = ["megatron"]

for name, gated in (("plain", False), ("gated", True)):
    config = TransformerConfig(
        num_layers=1, hidden_size=4096, num_attention_heads=32, gated_linear_unit=gated
    )
    weights = (3 if gated else 2) * config.hidden_size * config.ffn_hidden_size
    print(f'{name} = {{"width": {config.ffn_hidden_size}, "weights": {weights}}}')
