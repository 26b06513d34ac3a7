"""Whether a configuration without experts may have sequences of several lengths."""

import json

from megatron.core.transformer import TransformerConfig

RANKS = 1
UPSTREAMS = ["megatron"]

SIZES = {"num_layers": 1, "hidden_size": 8, "num_attention_heads": 1}


def outcome(**given):
    """Return its number of experts, or the name of the error."""
    try:
        config = TransformerConfig(**SIZES, variable_seq_lengths=True, **given)
        return config.num_moe_experts
    except ValueError as error:
        return type(error).__name__


print("default =", json.dumps(outcome()))
print("alltoall =", json.dumps(outcome(moe_token_dispatcher_type="alltoall")))
