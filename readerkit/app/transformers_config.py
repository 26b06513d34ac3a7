"""A model's sizes as the transformers library keeps them, said as our options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from readerkit.errors import EstimateError

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
_OF_A_PART = "qk_nope_head_dim"
"""Beside it ``head_dim`` may be that of the part that turns: this one counts."""
_SHARED = "n_shared_experts"
"""How many, each as large as a routed one."""
_BIASES = {
    "attention_bias": "--qkv-bias --output-bias",
    "mlp_bias": "--mlp-bias",
}
"""What a true value switches on."""


def options_of_config(path: str) -> str:
    """Return the options for the sizes in a ``config.json``; "" where it is none.

    Raises:
        EstimateError: values that are no sizes, or two of a size that differ.
    """
    try:
        config = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        return ""
    if not isinstance(config, dict) or not {"hidden_size", "n_embd"} & config.keys():
        return ""
    known = (*_OPTIONS, _SHARED)
    keys = {key: config[key] for key in known if config.get(key) not in (None, 0)}
    _refuse(path, keys)
    shared = keys.pop(_SHARED, 0)
    sizes = {_OPTIONS[key]: value for key, value in keys.items()}
    if shared and "expert-ffn" in sizes:
        sizes["shared-ffn"] = shared * sizes["expert-ffn"]
    said = [f"--{option} {value}" for option, value in sizes.items()]
    if "tie_word_embeddings" in config:
        said.append("--tied" if config["tie_word_embeddings"] else "--untied")
    said += [biases for key, biases in _BIASES.items() if config.get(key) is True]
    if str(config.get("model_type")).startswith("qwen2"):  # its code has them always
        said.append("--qkv-bias")
    return " ".join(said)


def _refuse(path: str, keys: dict[str, Any]) -> None:
    """Refuse what is no whole number, and a size that two keys tell differently."""
    faults = []
    by_option: dict[str, str] = {}
    for key, value in keys.items():
        if type(value) is not int or value < 0:
            got = json.dumps(value)[:40]
            faults.append(f"{key}: got {got}, expected a whole number")
            continue
        before = by_option.setdefault(_OPTIONS.get(key, key), key)
        if keys[before] != value and key != _OF_A_PART:
            faults.append(f"{key}: got {value}, expected {keys[before]} as of {before}")
    if faults:
        raise EstimateError("\n".join(f"{path}: {fault}" for fault in faults))
