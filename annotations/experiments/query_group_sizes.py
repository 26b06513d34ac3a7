"""Query groups that a Megatron configuration of 24 heads takes on 4 ranks."""

from megatron.core.transformer import TransformerConfig

RANKS = 1
UPSTREAMS = ["megatron"]

taken = []
for groups in range(1, 13):
    sizes = {"num_attention_heads": 24, "num_query_groups": groups}
    try:
        TransformerConfig(
            num_layers=1, hidden_size=48, tensor_model_parallel_size=4, **sizes
        )
    except ValueError:
        continue
    taken.append(groups)
print("groups_on_4_ranks =", taken)
