"""The ZeRO mini beside its upstreams: stages 2 and 3 beside torch's fully_shard.

No upstream gives whole tensors to owners; fully_shard cuts every tensor instead. The
bytes are the same: stage 2 beside parameters that stay gathered from forward to
backward, stage 3 beside parameters that are freed in between.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from mini_impls import zero, zero_stage3
from mini_impls.compare import fsdp, zero_redundancy_optimizer
from mini_impls.compare.sides import (
    Comparison,
    Formula,
    Formulas,
    Sides,
    Tolerance,
    all_bytes,
)
from mini_impls.compare.zero_redundancy_optimizer import ZeroSide, owned_formulas
from mini_impls.launch import Rank
from mini_impls.model import GPT, build_model
from readerkit.content.vocabulary import Category, SideName


class MiniSide(ZeroSide):
    """Ours."""

    optimizer: Any

    def parameters(self) -> dict[str, Tensor]:
        """Return all parameters, borrowed from their owners where they are not here."""
        full = self.optimizer.full_parameters()
        return {name: full[param] for name, param in self.module.named_parameters()}


class TorchSide(fsdp.TorchSide):
    """Torch's, seen whole: what one rank owns is spread over all of them there."""

    owned: frozenset[str] = frozenset()

    def parameters(self) -> dict[str, Tensor]:
        """Return all parameters, gathered."""
        return {name: whole(p) for name, p in self.module.named_parameters()}

    def gradients(self) -> dict[str, Tensor]:
        """Return the gradients, gathered, of what the mini's rank owns."""
        named = self.module.named_parameters()
        grads = {name: whole(p.grad) for name, p in named if p.grad is not None}
        return {name: grad for name, grad in grads.items() if name in self.owned}


def whole(tensor: Tensor) -> Tensor:
    """Return a sharded tensor gathered; all ranks must call it."""
    assert isinstance(tensor, DTensor)
    gathered: Tensor = tensor.detach().full_tensor()  # type: ignore[attr-defined]
    return gathered


def build(stage: int, rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini's stage and fully_shard, cut at the layers."""
    config, lr = comparison.config, comparison.learning_rate
    ours = build_model(config).to(rank.device)
    optimizer: Any
    make, group = torch.optim.AdamW, rank.group
    if stage == 2:
        optimizer = zero.ZeroStage2(ours.parameters(), make, group, lr=lr)
    else:
        optimizer = zero_stage3.ZeroStage3(ours, ours.parameters(), make, group, lr=lr)
    mini = MiniSide(rank, ours, ours, optimizer)
    owners = optimizer.param_to_rank
    mine = {name for name, p in ours.named_parameters() if owners[p] == rank.rank}
    mini.owned = mine

    theirs = build_model(config).to(rank.device)
    expected = formulas(stage, theirs, optimizer, rank)
    mesh = DeviceMesh.from_group(group, rank.device.type)
    for module in (*theirs.layers, theirs):
        fully_shard(module, mesh=mesh, reshard_after_forward=stage == 3)
    upstream = TorchSide(rank, theirs, theirs, make(theirs.parameters(), lr))
    upstream.owned = frozenset(mine)
    return Sides(mini, upstream, {group.group_name: "dp"}, expected)


def formulas(stage: int, gpt: GPT, optimizer: Any, rank: Rank) -> Formulas:
    """Return each tensor from its owner, and beside it each cut into rows."""
    params = list(gpt.parameters())
    w = rank.world_size
    padded = sum(fsdp.padded_bytes(p, w) for p in params)
    once = all_bytes(params, "parameters, each from its owner")
    twice = Formula(2 * once.bytes, f"2 x {once.text}")
    uses = 1 if stage == 2 else 2
    ours = {
        "reduce": all_bytes(params, "gradients, each to its owner"),
        "broadcast": once if stage == 2 else twice,
    }
    theirs = {
        "all_gather": Formula(uses * padded, f"{uses} x {padded:,} B of parameters"),
        "reduce_scatter": Formula(padded, f"{padded:,} B of gradients, each once"),
    }
    kept: dict[Category, Formula] = owned_formulas(optimizer, rank)
    if stage == 2:
        kept["parameters"] = all_bytes(params, "parameters")
    payload: Mapping[SideName, Mapping[str, Formula]]
    payload = {"mini": ours, "upstream": theirs}
    cut = fsdp.formulas(gpt, rank).held["upstream"]
    return Formulas(payload, {"mini": kept, "upstream": cut})


COMPARISONS = (
    *zero_redundancy_optimizer.COMPARISONS,
    *(
        Comparison(
            mini="zero",
            upstream=f"fully_shard_stage{stage}",
            build=partial(build, stage),
            tolerance=Tolerance(
                1e-4,
                "a reduce and a reduce-scatter add in another order, and AdamW divides",
            ),
            of_two_ranks=Tolerance(
                0.0, "two ranks: a + b = b + a, and halving is exact"
            ),
        )
        for stage in (2, 3)
    ),
)
