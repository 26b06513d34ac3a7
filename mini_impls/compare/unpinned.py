"""What another torch than the pinned one calls by another name."""

from typing import Any

import torch.distributed as dist

OLDER = {
    "all_gather_single": "all_gather_into_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
}
"""Names of the pinned torch, and by which torch 2.11 knows the same calls."""


def give_names() -> dict[str, str]:
    """Let torch answer to the pinned one's names; return those it did not have."""
    missing = {ours: old for ours, old in OLDER.items() if not hasattr(dist, ours)}
    for ours, old in missing.items():
        setattr(dist, ours, getattr(dist, old))
    return missing


def param_groups(state: Any) -> list[Any]:
    """Return the groups of parameters of a module; torch 2.11 has one at most."""
    if hasattr(state, "_fsdp_param_groups"):
        return list(state._fsdp_param_groups)
    return [state._fsdp_param_group] if state._fsdp_param_group else []
