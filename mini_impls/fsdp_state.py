"""State of a sharded model: save it from W ranks, load it on any number, clip it.

Works on shards by name, whoever made them: rows [start, stop) of a tensor. Every rank
writes the rows that it holds and reads the rows that it needs, so that no rank ever
holds a whole tensor. Files are safetensors and one JSON index.

Follows:
- pytorch/pytorch: torch/distributed/checkpoint/state_dict_saver.py
- pytorch/pytorch: torch/distributed/checkpoint/planner_helpers.py (overlapping rows)
- pytorch/pytorch: torch/distributed/fsdp/fully_sharded_data_parallel.py
  (`clip_grad_norm_`)

Leaves out:
- asynchronous saving, copies of one shard on several ranks, random states
- optimizer state that has neither the shard's shape nor that of a scalar
- the sharded training itself: `fsdp.py`
"""

import json
import math
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only


@dataclass(frozen=True, slots=True)
class Shard:
    """Rows [start, start + len(param)) of a tensor that has `rows` of them."""

    param: nn.Parameter
    start: int
    rows: int

    def shape(self) -> list[int]:
        """Return the shape of the whole tensor."""
        return [self.rows, *self.param.shape[1:]]


def shard_rows(tensor: Tensor, group: dist.ProcessGroup) -> Shard:
    """Return this rank's rows as a parameter; the last ranks may have fewer or none."""
    start = min(group.rank() * -(-len(tensor) // group.size()), len(tensor))
    rows = tensor.detach().chunk(group.size())  # at most W of (C or fewer, ...)
    mine = rows[group.rank()] if group.rank() < len(rows) else tensor.detach()[:0]
    return Shard(nn.Parameter(mine.clone()), start, len(tensor))  # (C or fewer, ...)


# --- 1. clip by the norm of all gradients, which no rank has ---


def clip_grad_norm_(
    shards: Iterable[nn.Parameter],
    max_norm: float,
    group: dist.ProcessGroup,
    *,
    norm_type: float = 2.0,
    replicated: Iterable[nn.Parameter] = (),
) -> Tensor:
    """Scale all gradients so that their total norm is at most `max_norm`; return it.

    The p-norm of parts is the p-th root of the sum of their p-th powers: each rank
    sends one number, of fp32 whatever its gradients are: a rank that has no rows sends
    it too. A replicated gradient is the same everywhere and counts once.
    """
    if norm_type <= 0:
        raise ValueError(f"norm_type must be above 0, got {norm_type}")
    shards, replicated = list(shards), list(replicated)
    device = next((p.device for p in shards + replicated), torch.device("cpu"))
    local_sharded_norm = _get_grad_norm(shards, norm_type, device)
    local_nonsharded_norm = _get_grad_norm(replicated, norm_type, device)
    if norm_type == math.inf:
        norm = torch.maximum(local_sharded_norm, local_nonsharded_norm)
        # Not every backend's maximum keeps a NaN, so whether there is one is sent too.
        is_nan = norm.isnan()
        norms = torch.stack([norm.masked_fill(is_nan, 0.0), is_nan.to(norm.dtype)])
        dist.all_reduce(norms, op=dist.ReduceOp.MAX, group=group)  # (2)
        total_norm = norms[0].masked_fill(norms[1] > 0, math.nan)  # ()
    else:
        total_norm = local_sharded_norm**norm_type
        dist.all_reduce(total_norm, group=group)  # a scalar
        total_norm += local_nonsharded_norm**norm_type
        total_norm = total_norm ** (1.0 / norm_type)
    # The margin is for 0 / 0. It guards against no rounding: from a norm of 32 on it is
    # lost in fp32, and the scaled norm may be above the bound by a last bit.
    clip_coef = torch.clamp(max_norm / (total_norm + 1e-6), max=1.0)
    for param in shards + replicated:
        if param.grad is not None:
            param.grad *= clip_coef
    return total_norm


def _get_grad_norm(
    params: list[nn.Parameter], norm_type: float, device: torch.device
) -> Tensor:
    grads = [p.grad for p in params if p.grad is not None and p.grad.numel()]
    if not grads:
        return torch.zeros((), device=device)
    vector_norm = torch.linalg.vector_norm
    norms = [  # squares of 16 bits would overflow, and doubles are narrowed last
        vector_norm(g, norm_type, dtype=torch.promote_types(g.dtype, torch.float32))
        for g in grads
    ]
    total: Tensor = vector_norm(torch.stack([n.float() for n in norms]), norm_type)
    return total


# --- 2. save: each rank its rows, rank 0 the index ---


def save_checkpoint(
    directory: Path,
    shards: Mapping[str, Shard],
    optimizer: torch.optim.Optimizer,
    group: dist.ProcessGroup,
    *,
    step: int,
) -> None:
    """Write a new directory; it has its name once every rank has written its file."""
    aside = directory.with_name(directory.name + ".part")
    if directory.exists():
        raise FileExistsError(f"{directory} exists: a checkpoint is never overwritten")
    name_of: dict[Tensor, str] = {shard.param: n for n, shard in shards.items()}
    tensors = {name: shard.param.detach() for name, shard in shards.items()}
    scalars: dict[str, dict[str, float]] = {}
    for param, state in optimizer.state.items():
        name = name_of[param]
        for key, value in state.items():
            if isinstance(value, Tensor) and value.shape == param.shape:
                tensors[f"{name}/{key}"] = value
            elif isinstance(value, Tensor) and value.dim():
                raise ValueError(
                    f"state {key} of {name} has shape {tuple(value.shape)}, "
                    f"its shard {tuple(param.shape)}"
                )
            else:  # equal on all ranks: the count of steps
                scalars.setdefault(name, {})[key] = float(value)
    param_groups = [
        {**options, "params": [name_of[param] for param in options["params"]]}
        for options in optimizer.param_groups
    ]
    param_groups = tree_map_only(Tensor, Tensor.item, param_groups)
    json.dumps(param_groups)  # what it refuses is refused before anything is written
    if group.rank() == 0:
        shutil.rmtree(aside, ignore_errors=True)  # of a save that was cut short
        aside.mkdir(parents=True)
    # The starts of all ranks for the index; no rank is past this before the directory
    # is there, nor past the barrier below before all files are.
    own = torch.tensor([shard.start for shard in shards.values()])  # (shards)
    starts = own.new_empty(group.size() * len(own))  # (W shards)
    device = next(iter(shards.values())).param.device
    own, starts = own.to(device), starts.to(device)
    dist.all_gather_single(starts, own, group=group)  # (shards) to (W shards)
    file = aside / f"rank-{group.rank():05}.safetensors"
    save_file({key: t.contiguous() for key, t in tensors.items()}, file)
    dist.barrier(group)
    if group.rank() == 0:
        index = {
            "step": step,
            "shapes": {name: shard.shape() for name, shard in shards.items()},
            "starts": dict(
                zip(shards, starts.view(-1, len(own)).T.tolist(), strict=True)
            ),  # (shards, W)
            "scalars": scalars,
            "param_groups": param_groups,
        }
        (aside / "index.json").write_text(json.dumps(index, indent=1))
        aside.rename(directory)
    dist.barrier(group)


# --- 3. load: the rows needed here, from whichever files hold them ---


def load_checkpoint(
    directory: Path,
    shards: Mapping[str, Shard],
    optimizer: torch.optim.Optimizer,
) -> int:
    """Fill shards and optimizer in place and return the step; sends nothing.

    The world that saved may have had another size: rows are what counts.
    """
    index = json.loads((directory / "index.json").read_text())
    shapes = {name: shard.shape() for name, shard in shards.items()}
    _check_same(f"{directory} holds another model", index["shapes"], shapes)
    # Which options belong to whom is a matter of names: groups have none of their own.
    name_of: dict[Tensor, str] = {shard.param: n for n, shard in shards.items()}
    saved_groups = {
        name: f"group {i}"
        for i, options in enumerate(index["param_groups"])
        for name in options["params"]
    }
    groups = {
        name_of[param]: f"group {i}"
        for i, options in enumerate(optimizer.param_groups)
        for param in options["params"]
    }
    _check_same(f"{directory} holds other parameter groups", saved_groups, groups)
    paths = sorted(directory.glob("rank-*.safetensors"))
    files: list[Any] = [safe_open(path, framework="pt") for path in paths]
    keys = set(files[0].keys())
    for name, shard in shards.items():
        starts = index["starts"][name]
        shard.param.detach().copy_(_read_rows(files, starts, name, shard))
        state: dict[str, Any] = {
            key: torch.tensor(value)
            for key, value in index["scalars"].get(name, {}).items()
        }
        for full_key in sorted(key for key in keys if key.startswith(f"{name}/")):
            rows = _read_rows(files, starts, full_key, shard)
            state[full_key.removeprefix(f"{name}/")] = rows.to(shard.param.device)
        optimizer.state[shard.param] = state  # none replaces what there was, too
    for options, loaded in zip(
        optimizer.param_groups, index["param_groups"], strict=True
    ):
        del loaded["params"]
        for key, value in loaded.items():
            # JSON has neither tuples, AdamW's betas are one, nor tensors.
            if isinstance(options.get(key), Tensor):
                value = torch.full_like(options[key], value)
            options[key] = tuple(value) if isinstance(value, list) else value
    return int(index["step"])


def _check_same(what: str, saved: dict[str, Any], here: dict[str, Any]) -> None:
    differ = [
        f"{name}: {saved.get(name)} saved, {here.get(name)} here"
        for name in sorted(saved.keys() | here.keys())
        if saved.get(name) != here.get(name)
    ]
    if differ:
        raise ValueError(f"{what}: {'; '.join(differ)}")


def _read_rows(files: list[Any], starts: list[int], key: str, shard: Shard) -> Tensor:
    """Join the overlaps of [start, stop) with the rows of each file."""
    start, stop = shard.start, shard.start + len(shard.param)
    pieces: list[Tensor] = []
    for file, first in zip(files, starts, strict=True):
        rows = file.get_slice(key)
        low = max(start - first, 0)
        high = min(stop - first, rows.get_shape()[0])
        if low < high or (start == stop and not pieces):
            pieces.append(rows[low:high] if low < high else rows[0:0])
    return torch.cat(pieces)  # (stop - start, ...)


if __name__ == "__main__":
    from mini_impls.demos.fsdp_state import main

    raise SystemExit(main())
