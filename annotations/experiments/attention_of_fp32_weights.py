"""Core's own attention of fp32 queries, keys and values, configured for bf16."""

import contextlib
import json
from types import SimpleNamespace as Made

import torch
from megatron.core.transformer import dot_product_attention as attention
from megatron.core.transformer.enums import AttnMaskType
from megatron.core.transformer.transformer_config import TransformerConfig

RANKS = 1
UPSTREAMS = ["megatron"]

torch.cuda.current_device = lambda: "cpu"
group = Made(size=lambda: 1, rank=lambda: 0)
buffer = Made(get_tensor=lambda shape, dtype, name: torch.empty(shape, dtype=dtype))
tracker = Made(fork=contextlib.nullcontext)
attention.parallel_state = Made(get_global_memory_buffer=lambda: buffer)
attention.tensor_parallel = Made(get_cuda_rng_tracker=lambda: tracker)


def attend(bf16: bool) -> str:
    """Return the dtype of the context of fp32 values, or what is raised."""
    shape = {"num_layers": 1, "hidden_size": 64, "num_attention_heads": 4}
    config = TransformerConfig(**shape, bf16=bf16, masked_softmax_fusion=False)
    core = attention.DotProductAttention(
        config, 1, AttnMaskType.causal, "self", pg_collection=Made(tp=group)
    )
    values, mask = torch.ones(8, 2, 4, 16), torch.ones(1, 1, 8, 8).triu(1).bool()
    try:
        return str(core(values, values, values, mask).dtype)
    except RuntimeError as error:
        return f"RuntimeError: {error}"


print("configured_fp32 =", json.dumps(attend(bf16=False)))
print("configured_bf16 =", json.dumps(attend(bf16=True)))
