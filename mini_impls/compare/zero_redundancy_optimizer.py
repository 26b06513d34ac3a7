"""The first stage of the ZeRO mini beside torch's ZeroRedundancyOptimizer."""

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mini_impls import zero
from mini_impls.compare.sides import (
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    Held,
    Sides,
    Tolerance,
    all_bytes,
    optimizer_state,
)
from mini_impls.launch import Rank
from mini_impls.model import GPT, build_model

with warnings.catch_warnings():
    # Its package compiles other optimizers with TorchScript when it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch.distributed.optim import ZeroRedundancyOptimizer
from readerkit.content.vocabulary import Category, SideName


class ZeroSide(DataParallelSide):
    """A side whose optimizer keeps the state of some parameters only."""

    owned: set[str] | None = None
    """Parameters whose gradient this rank gets; None: all."""

    def gradients(self) -> dict[str, Tensor]:
        """Return the gradients that the optimizer reads."""
        grads = super().gradients()
        return {n: g for n, g in grads.items() if self.owned is None or n in self.owned}

    def zero_grad(self) -> None:
        """Drop the gradients."""
        for param in self.module.parameters():
            param.grad = None

    def held(self) -> Held:
        """Return whole parameters and gradients, and the state that is here."""
        params = list(self.module.parameters())
        return {
            "parameters": [param.detach() for param in params],
            "gradients": [param.grad for param in params if param.grad is not None],
            "optimizer state": optimizer_state(local_optimizer(self.optimizer)),
        }

    def watched(self) -> list[Tensor]:
        """Return all parameters that are trained."""
        return list(self.module.parameters())


def local_optimizer(optimizer: Any) -> torch.optim.Optimizer:
    """Return the optimizer that runs on this rank's parameters."""
    local: torch.optim.Optimizer = optimizer.optim
    return local


def build(
    gradients: Literal["all_reduce", "reduce"], rank: Rank, comparison: Comparison
) -> Sides:
    """Return the mini and torch's optimizer behind torch's DDP."""
    config, lr = comparison.config, comparison.learning_rate
    ours = build_model(config).to(rank.device)
    optimizer: Any = zero.ZeroStage1(
        ours.parameters(),
        torch.optim.AdamW,
        rank.group,
        gradients=gradients,
        lr=lr,
    )
    mini = ZeroSide(rank, ours, ours, optimizer)

    theirs = build_model(config).to(rank.device)
    model = nn.parallel.DistributedDataParallel(theirs, process_group=rank.group)
    upstream = ZeroSide(
        rank,
        model,
        theirs,
        ZeroRedundancyOptimizer(
            theirs.parameters(), torch.optim.AdamW, process_group=rank.group, lr=lr
        ),
    )
    if gradients == "reduce":
        owners = optimizer.param_to_rank
        mini.owned = {n for n, p in ours.named_parameters() if owners[p] == rank.rank}
        upstream.owned = mini.owned
    expected = formulas(ours, optimizer, gradients, rank)
    return Sides(mini, upstream, {rank.group.group_name: "dp"}, expected)


def owned_formulas(optimizer: Any, rank: Rank) -> dict[Category, Formula]:
    """Return what this rank keeps where it keeps only what it owns."""
    owners = optimizer.param_to_rank
    mine = [param for param in owners if owners[param] == rank.rank]
    numel = sum(param.numel() for param in mine)
    return {
        "parameters": Formula(4 * numel, f"4 B x {numel:,} owned parameters"),
        "gradients": Formula(4 * numel, f"4 B x {numel:,} owned gradients"),
        "optimizer state": Formula(
            8 * numel + 4 * len(mine),
            f"2 moments x 4 B x {numel:,} owned + a 4 B step count x {len(mine)}",
        ),
    }


def formulas(gpt: GPT, optimizer: Any, gradients: str, rank: Rank) -> Formulas:
    """Return every gradient and every parameter once, and this rank's state."""
    params = list(gpt.parameters())
    sent = {
        "all_reduce": all_bytes(params, "gradients, each once"),
        "broadcast": all_bytes(params, "parameters, each from its owner"),
    }
    kept: dict[Category, Formula] = {
        **owned_formulas(optimizer, rank),
        "parameters": all_bytes(params, "parameters"),
        "gradients": all_bytes(params, "gradients"),
    }
    ours = sent
    if gradients == "reduce":
        ours = {"reduce": sent["all_reduce"], "broadcast": sent["broadcast"]}
    payload: Mapping[SideName, Mapping[str, Formula]]
    payload = {"mini": ours, "upstream": sent}
    return Formulas(payload, {"mini": kept, "upstream": kept})


TOLERANCE = Tolerance(1e-4, "gloo starts each chunk of another buffer at another rank")
OF_TWO_RANKS = Tolerance(0.0, "two ranks: a + b = b + a, and both divide by 2 first")
COMPARISONS = (
    Comparison(
        mini="zero",
        upstream="zero_redundancy_optimizer",
        build=partial(build, "all_reduce"),
        tolerance=TOLERANCE,
        of_two_ranks=OF_TWO_RANKS,
    ),
    Comparison(
        mini="zero",
        upstream="zero_redundancy_optimizer_1x",
        build=partial(build, "reduce"),
        tolerance=TOLERANCE,
        of_two_ranks=OF_TWO_RANKS,
    ),
)
