"""Where keys of Megatron's static cache are rotated: in a copy, behind the cache."""

import json
from types import SimpleNamespace as Made

import torch
from megatron.core.inference.contexts import StaticInferenceContext
from megatron.core.models.common.embeddings.rope_utils import apply_rotary_pos_emb
from megatron.core.transformer.attention import Attention

RANKS = 1
UPSTREAMS = ["megatron"]

torch.cuda.current_device = lambda: "cpu"
layer = Made(layer_number=1, key_hidden_size=4, val_hidden_size=4, training=False)
layer.num_query_groups_per_partition, layer.attn_mask_type = 2, None
layer.config = Made(flash_decode=False, apply_rope_fusion=False)
layer.config.rotary_interleaved = layer.config.multi_latent_attention = False
layer._allocate_memory = lambda *sizes: Attention._allocate_memory(layer, *sizes)
context, given = StaticInferenceContext(1, 8), torch.randn(3, 1, 2, 4)
call = Attention._adjust_key_value_for_inference
alone, rotated = Made(size=lambda: 1, rank=lambda: 0), []
for tokens in (given[:2], given[2:]):
    _, key, value, (_, angles), _, _ = call(
        layer, context, tokens, tokens, tokens, (torch.randn(8, 1, 1, 4),) * 2
    )
    new = apply_rotary_pos_emb(key, angles, layer.config, cp_group=alone)
    rotated.append(len(new))
    context.increment_sequence_len_offset(len(tokens))
memory = context.key_value_memory_dict[1][0]
print("view =", json.dumps(key.data_ptr() == memory.data_ptr()))
print("cached_as_given =", json.dumps(torch.equal(memory[:3], given)))
print("rotated_at_each_step =", rotated)
print("copy =", json.dumps(new.data_ptr() != memory.data_ptr()))
