"""What Megatron's QK-clip does to a main weight that is whole, cut, or elsewhere."""

import json
from types import SimpleNamespace

import torch
from megatron.core.transformer.attention import SelfAttention

UPSTREAMS = ["megatron"]


def clipped(make_main, ranks=1):
    """Two heads of two features a rank; the first's logits are four times too large."""
    heads = SelfAttention.__new__(SelfAttention)
    torch.nn.Module.__init__(heads)
    heads.config = SimpleNamespace(
        qk_clip=True, qk_clip_threshold=100.0, qk_clip_alpha=0.5
    )
    heads.num_attention_heads_per_partition = heads.num_query_groups_per_partition = 2
    heads.query_projection_size = heads.kv_projection_size = 4 * ranks  # of all
    heads.core_attention = SimpleNamespace(
        current_max_attn_logits=torch.tensor([400.0, 1.0])
    )
    heads.linear_qkv = torch.nn.Linear(2, 12, bias=False)
    weight = heads.linear_qkv.weight
    weight.data.fill_(1.0)
    weight.main_param = make_main(weight.data.clone())
    try:
        heads.clip_qk()
    except (AttributeError, RuntimeError) as error:
        return type(error).__name__
    return weight.main_param[:, 0].tolist()


print(f"whole = {json.dumps(clipped(lambda main: main))}")
print(f"slice = {json.dumps(clipped(lambda main: main.flatten()[:5]))}")
print(f"elsewhere = {json.dumps(clipped(lambda main: None))}")
print(f"flat = {json.dumps(clipped(lambda main: main.flatten()))}")
print(f"of_two_ranks = {json.dumps(clipped(lambda main: main, ranks=2))}")
