"""The DDP mini beside torch's and Megatron's DistributedDataParallel."""

from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from mini_impls import ddp
from mini_impls.compare import megatron
from mini_impls.compare.sides import (
    Comparison,
    DataParallelSide,
    Formulas,
    Held,
    Sides,
    Tolerance,
    all_bytes,
    trained,
)
from mini_impls.launch import Rank
from mini_impls.model import GPT, build_model

BUCKET_CAP_MB = 0.1
"""Small, so that a small model has several buckets."""


class MiniSide(DataParallelSide):
    """Ours."""

    def held(self) -> Held:
        """Return the buckets as gradients: every `.grad` is a view into one."""
        assert isinstance(self.model, ddp.DistributedDataParallel)
        buckets = [bucket.grad_data for bucket in self.model.buckets]
        return {**super().held(), "gradients": buckets}


def build_mini(rank: Rank, comparison: Comparison) -> MiniSide:
    """Return the mini around its own copy of the model."""
    gpt = build_model(comparison.config).to(rank.device)
    model = ddp.DistributedDataParallel(
        gpt,
        rank.group,
        bucket_cap_mb=BUCKET_CAP_MB,
        first_bucket_mb=BUCKET_CAP_MB,
    )
    optimizer = torch.optim.AdamW(gpt.parameters(), comparison.learning_rate)
    return MiniSide(rank, model, gpt, optimizer)


def formulas(gpt: GPT) -> Formulas:
    """Return one all-reduce of every gradient, and a full copy of everything."""
    params = list(gpt.parameters())
    sent = {"all_reduce": all_bytes(params, "gradients, each once")}
    kept = trained(params)
    return Formulas.alike(sent, kept)


# --- torch ---


def build_torch(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini and torch's DDP."""
    gpt = build_model(comparison.config).to(rank.device)
    model = torch.nn.parallel.DistributedDataParallel(
        gpt,
        process_group=rank.group,
        bucket_cap_mb=BUCKET_CAP_MB,
        gradient_as_bucket_view=True,
    )
    optimizer = torch.optim.AdamW(gpt.parameters(), comparison.learning_rate)
    upstream = DataParallelSide(rank, model, gpt, optimizer)
    mini = build_mini(rank, comparison)
    return Sides(mini, upstream, {rank.group.group_name: "dp"}, formulas(gpt))


# --- Megatron ---


class MegatronSide(DataParallelSide):
    """Megatron's DDP, which keeps gradients in `main_grad` and never in `.grad`."""

    def __init__(self, ddp_model: Any, *args: Any) -> None:
        super().__init__(*args)
        self.ddp = ddp_model

    def zero_grad(self) -> None:
        """Zero the buffers, as Megatron's training loop does before each step."""
        self.ddp.zero_grad_buffer()
        super().zero_grad()

    def finish_gradients(self) -> None:
        """Wait for the all-reduces, and let a plain optimizer see the result."""
        self.ddp.finish_grad_sync()
        for param in self.module.parameters():
            param.grad = param.main_grad  # type: ignore[attr-defined]

    def held(self) -> Held:
        """Return the buffers as gradients."""
        grads: list[Tensor] = [buffer.grad_data for buffer in self.ddp.buffers]
        return {**super().held(), "gradients": grads}


def build_megatron(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini and Megatron's DDP."""
    groups = megatron.start(rank)
    distributed: Any = import_module("megatron.core.distributed")
    transformer: Any = import_module("megatron.core.transformer")
    config = comparison.config
    gpt = build_model(config).to(rank.device)
    model = distributed.DistributedDataParallel(
        transformer.TransformerConfig(
            num_layers=config.num_layers,
            hidden_size=config.hidden_size,
            num_attention_heads=config.num_attention_heads,
        ),
        distributed.DistributedDataParallelConfig(
            overlap_grad_reduce=True,
            # In elements of 4 bytes.
            bucket_size=int(BUCKET_CAP_MB * ddp.MIB) // 4,
        ),
        gpt,
    )
    model.broadcast_params()
    optimizer = torch.optim.AdamW(gpt.parameters(), comparison.learning_rate)
    upstream = MegatronSide(model, rank, model, gpt, optimizer)
    mini = build_mini(rank, comparison)
    groups = {rank.group.group_name: "dp", **groups}
    return Sides(mini, upstream, groups, formulas(gpt))


# --- both ---

TOLERANCE = Tolerance(
    1e-4,
    "gloo's ring starts each chunk of a bucket at another rank, so other buckets "
    "mean another order of sums, and AdamW divides small sums by their size",
)
OF_TWO_RANKS = Tolerance(0.0, "two ranks: a + b = b + a, and both divide by 2 first")
COMPARISONS = (
    Comparison(
        mini="ddp",
        upstream="torch",
        build=build_torch,
        tolerance=TOLERANCE,
        of_two_ranks=OF_TWO_RANKS,
    ),
    Comparison(
        mini="ddp",
        upstream="megatron",
        build=build_megatron,
        tolerance=TOLERANCE,
        of_two_ranks=OF_TWO_RANKS,
        upstreams=("megatron",),
        shims=("current_device",),
    ),
)
