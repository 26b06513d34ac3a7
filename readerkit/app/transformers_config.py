"""A model's sizes as the transformers library keeps them, said as our options."""

from __future__ import annotations

import json
from pathlib import Path

_OPTIONS = {
    "num_hidden_layers": "layers",
    "n_layer": "layers",
    "hidden_size": "hidden",
    "n_embd": "hidden",
    "num_attention_heads": "heads",
    "n_head": "heads",
    "num_key_value_heads": "kv-heads",
    "head_dim": "head-dim",
    "qk_nope_head_dim": "head-dim",
    "intermediate_size": "ffn",
    "n_inner": "ffn",
    "vocab_size": "vocab",
    "n_positions": "positions",
    "num_local_experts": "experts",
    "num_experts": "experts",
    "n_routed_experts": "experts",
    "num_experts_per_tok": "experts-per-token",
    "moe_intermediate_size": "expert-ffn",
    "shared_expert_intermediate_size": "shared-ffn",
    "decoder_sparse_step": "moe-every",
    "first_k_dense_replace": "dense-layers",
    "kv_lora_rank": "kv-rank",
    "q_lora_rank": "query-rank",
    "qk_rope_head_dim": "rope-dim",
    "v_head_dim": "value-dim",
}
"""Keys of a ``config.json``, and the option that has the same meaning and unit."""


def options_of_config(path: str) -> str:
    """Return the options for the sizes in a ``config.json``; "" where it is none."""
    try:
        config = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        return ""
    if not isinstance(config, dict) or not {"hidden_size", "n_embd"} & config.keys():
        return ""
    sizes = {
        option: value
        for key, option in _OPTIONS.items()
        if type(value := config.get(key)) is int and value
    }
    shared = config.get("n_shared_experts")  # how many, each as large as a routed one
    if type(shared) is int and shared and "expert-ffn" in sizes:
        sizes["shared-ffn"] = shared * sizes["expert-ffn"]
    said = [f"--{option} {value}" for option, value in sizes.items()]
    if "tie_word_embeddings" in config:
        said.append("--tied" if config["tie_word_embeddings"] else "--untied")
    return " ".join(said)
