"""The FSDP mini beside torch's fully_shard (FSDP2)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from mini_impls import fsdp_options
from mini_impls.compare.sides import (
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    Held,
    Sides,
    Tolerance,
    optimizer_state,
)
from mini_impls.compare.unpinned import param_groups
from mini_impls.fsdp_param import FSDPParam
from mini_impls.launch import Rank
from mini_impls.model import GPT, GPTConfig, build_model
from readerkit.content.vocabulary import Category
from readerkit.evidence.record import Limit


class ShardedSide(DataParallelSide, ABC):
    """A side whose parameters are this rank's rows: compared as they are."""

    def parameters(self) -> dict[str, Tensor]:
        """Return the shards."""
        named = self.module.named_parameters()
        return {name: local(param) for name, param in named}

    def gradients(self) -> dict[str, Tensor]:
        """Return the shards of the gradients."""
        named = self.module.named_parameters()
        return {name: local(p.grad) for name, p in named if p.grad is not None}

    def held(self) -> Held:
        """Return the shards and what the gathered parameters left behind."""
        grads = [p.grad for p in self.module.parameters() if p.grad is not None]
        return {
            "parameters": [
                tensor
                for param in self.fsdp_params()
                for tensor in (param._sharded_param_data, *gathered(param))
            ],
            "gradients": [local(grad) for grad in grads],
            "optimizer state": optimizer_state(self.optimizer),
        }

    @abstractmethod
    def fsdp_params(self) -> Iterable[Any]:
        """Return what holds each parameter's shard."""

    def watched(self) -> list[Tensor]:
        """Return nothing: backward computes the gradients of gathered parameters."""
        return []


class MiniSide(ShardedSide):
    """Ours."""

    def __init__(self, state: fsdp_options.FSDPModelState, *args: Any) -> None:
        super().__init__(*args)
        self.state = state

    def fsdp_params(self) -> Iterable[Any]:
        """Return the mini's."""
        for param_group in self.state.param_groups.values():
            yield from param_group.fsdp_params


class TorchSide(ShardedSide):
    """Torch's."""

    def fsdp_params(self) -> Iterable[Any]:
        """Return those of every module that was sharded."""
        for module in self.module.modules():
            get_state = getattr(module, "_get_fsdp_state", None)
            for param_group in param_groups(get_state()) if get_state else ():
                yield from param_group.fsdp_params


def local(tensor: Tensor) -> Tensor:
    """Return what this rank holds."""
    tensor = tensor.detach()
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def gathered(fsdp_param: Any) -> list[Tensor]:
    """Return the memory of the whole parameter; it should be empty between steps."""
    if isinstance(fsdp_param, FSDPParam):
        return [fsdp_param.all_gather_output]
    return list(fsdp_param.all_gather_outputs)


def module_names(config: GPTConfig) -> list[str]:
    """Return the modules that are sharded each as a group; the root takes the rest."""
    return ["", *(f"layers.{i}" for i in range(config.num_layers))]


def build(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini and fully_shard, cut at the same modules."""
    config, lr = comparison.config, comparison.learning_rate
    ours = build_model(config).to(rank.device)
    expected = formulas(ours, rank)
    state = fsdp_options.fully_shard(ours, rank.group, modules=module_names(config))
    mini = MiniSide(state, rank, ours, ours, torch.optim.AdamW(ours.parameters(), lr))

    theirs = build_model(config).to(rank.device)
    mesh = DeviceMesh.from_group(rank.group, rank.device.type)
    for layer in theirs.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(theirs, mesh=mesh)
    optimizer = torch.optim.AdamW(theirs.parameters(), lr)
    upstream = TorchSide(rank, theirs, theirs, optimizer)
    return Sides(mini, upstream, {rank.group.group_name: "dp"}, expected)


def formulas(gpt: GPT, rank: Rank) -> Formulas:
    """Return the bytes of shards, padded to equal rows, and of what gathers them."""
    w = rank.world_size
    in_layers = sum(padded_bytes(p, w) for p in gpt.layers.parameters())
    whole = sum(padded_bytes(p, w) for p in gpt.parameters())
    root = whole - in_layers
    sent = {
        "all_gather": Formula(
            root + 2 * in_layers,
            f"2 x {in_layers:,} B of layers + {root:,} B of the root, once",
        ),
        "reduce_scatter": Formula(whole, f"{whole:,} B of gradients, each once"),
    }
    rows = [rows_of(p, w, rank.rank) for p in gpt.parameters()]
    numel = sum(
        n * (p.numel() // p.size(0))
        for n, p in zip(rows, gpt.parameters(), strict=True)
    )
    kept: dict[Category, Formula] = {
        "parameters": Formula(whole // w, f"{whole:,} B / {w} ranks"),
        "gradients": Formula(whole // w, f"{whole:,} B / {w} ranks"),
        "optimizer state": Formula(
            8 * numel + 4 * len(rows),
            f"2 moments x 4 B x {numel:,} + a 4 B step count x {len(rows)}",
        ),
    }
    return Formulas.alike(sent, kept)


def padded_bytes(param: nn.Parameter, world_size: int) -> int:
    """Return the bytes of a parameter with rows added until ranks have equally many."""
    rows = -(-param.size(0) // world_size) * world_size
    return rows * (param.numel() // param.size(0)) * param.element_size()


def rows_of(param: nn.Parameter, world_size: int, rank: int) -> int:
    """Return how many rows of a parameter a rank has."""
    each = -(-param.size(0) // world_size)
    return max(0, min(each, param.size(0) - rank * each))


COMPARISONS = (
    Comparison(
        mini="fsdp",
        upstream="fully_shard",
        build=build,
        tolerance=Tolerance(
            1e-5, "a mean of more than two ranks may be rounded elsewhere"
        ),
        of_two_ranks=Tolerance(0.0, "two ranks: a + b = b + a, in the same call"),
        limits=(Limit("uncovered", "reshard_after_forward=False", ""),),
    ),
)
