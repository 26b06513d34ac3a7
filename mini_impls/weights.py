"""Weights that cross a process boundary, held against digests when they arrive.

Leaves out:
- shards: every file holds whole tensors; `fsdp_state.py` saves what each rank has
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from mini_impls.model import GPT


def get_digests(weights: Mapping[str, Tensor]) -> dict[str, str]:
    """Return the SHA-256 of each tensor: of its type, its shape and its bytes."""
    digests = {}
    for name, weight in weights.items():
        flat = weight.detach().cpu().contiguous().flatten().view(torch.uint8)
        head = f"{weight.dtype} {tuple(weight.shape)} ".encode()
        digests[name] = hashlib.sha256(head + flat.numpy().tobytes()).hexdigest()
    return digests


def save_weights(gpt: GPT, path: Path) -> dict[str, str]:
    """Write a model as safetensors and return the digests of what was written."""
    weights = {name: p.detach().contiguous() for name, p in gpt.named_parameters()}
    save_file(weights, path)
    return get_digests(weights)


def load_weights(path: Path, digests: Mapping[str, str]) -> dict[str, Tensor]:
    """Read the weights that `save_weights` wrote.

    Raises:
        ValueError: for a tensor that is missing, unexpected, or not the same bytes.
    """
    weights = load_file(path)
    arrived = get_digests(weights)
    for name in sorted(digests.keys() | arrived.keys()):
        sent, got = digests.get(name, "nothing"), arrived.get(name, "nothing")
        if sent != got:
            raise ValueError(f"{path}: {name}: sent {sent[:12]}, arrived {got[:12]}")
    return weights
