"""The sequence parallel mini beside Megatron's layers with sequence_parallel=True.

The frame of the model is the mini's on both sides; whatever is parallel in it, layers,
mappings and the last all-reduce of gradients, is Megatron's on the other.
"""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mini_impls import sequence_parallel, sequence_parallel_model
from mini_impls.compare import megatron
from mini_impls.compare.sides import (
    Comparison,
    Formula,
    Formulas,
    Sides,
    Tolerance,
    trained,
)
from mini_impls.compare.tensor_parallel import MegatronLayers, TensorParallelSide
from mini_impls.demos.formulas import get_sequence_parallel_traffic
from mini_impls.launch import Rank
from mini_impls.model import GPT, GPTConfig, build_model, compute_loss

CONFIG = GPTConfig(num_query_groups=4)


class MiniSide(TensorParallelSide):
    """Ours."""

    def __init__(self, partial: list[nn.Parameter], rank: Rank, *args: Any) -> None:
        super().__init__(*args)
        self.partial, self.group = partial, rank.group

    def finish_gradients(self) -> None:
        """Add up what saw only this rank's tokens."""
        sequence_parallel_model.allreduce_non_tensor_model_parallel_grads(
            self.partial, self.group
        )


class MegatronSide(TensorParallelSide):
    """Megatron's."""

    def __init__(self, partial: list[nn.Parameter], config: Any, *args: Any) -> None:
        super().__init__(*args)
        self.config = config
        self.finalize: Any = import_module(
            "megatron.core.distributed.finalize_model_grads"
        )
        for param in partial:
            param.sequence_parallel = True  # type: ignore[attr-defined]
        # What Megatron asks its DDP wrapper for; there is no data parallelism here.
        self.gpt.ddp_config = SimpleNamespace(use_megatron_fsdp=False)  # type: ignore[assignment]

    def finish_gradients(self) -> None:
        """Add up what saw only this rank's tokens."""
        self.finalize._allreduce_non_tensor_model_parallel_grads(
            [self.gpt], self.config
        )


class MegatronEntry(nn.Module):
    """Into the sequence shards by Megatron's mapping."""

    def __init__(self, mappings: Any, dropout: nn.Module) -> None:
        super().__init__()
        self.mappings, self.dropout = mappings, dropout

    def forward(self, embeddings: Tensor) -> Tensor:
        """Map (B, T, D) to (T/W, B, D)."""
        hidden = embeddings.transpose(0, 1)
        hidden = self.mappings.scatter_to_sequence_parallel_region(hidden)
        dropped: Tensor = self.dropout(hidden)
        return dropped


class MegatronOutput(nn.Module):
    """Out of the sequence shards by Megatron's mapping."""

    def __init__(self, mappings: Any, weight: Any) -> None:
        super().__init__()
        self.mappings, self.weight = mappings, weight

    def forward(self, hidden: Tensor) -> Tensor:
        """Map (T/W, B, D) to all logits (B, T, V)."""
        hidden = self.mappings.gather_from_sequence_parallel_region(
            hidden, tensor_parallel_output_grad=False
        )
        return F.linear(hidden.transpose(0, 1), self.weight)


def cut(rank: Rank, config: GPTConfig) -> tuple[GPT, list[nn.Parameter]]:
    """Return the mini's model on this rank, and what sees only its tokens."""
    gpt = build_model(config).to(rank.device)
    generator = torch.default_generator
    if rank.device.type == "cuda":
        generator = torch.cuda.default_generators[rank.device.index]
    tracker = sequence_parallel_model.model_parallel_manual_seed(
        0, rank.rank, generator
    )
    return gpt, sequence_parallel_model.sequence_parallel(gpt, rank.group, tracker)


def build(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini and the same frame with Megatron's parts."""
    groups = megatron.start(rank, tensor=rank.world_size)
    mappings: Any = import_module("megatron.core.tensor_parallel.mappings")
    config, lr = comparison.config, comparison.learning_rate
    ours, partial = cut(rank, config)
    mini = MiniSide(partial, rank, ours, compute_loss, lr)

    theirs, partial = cut(rank, config)
    names = {id(p): name for name, p in theirs.named_parameters()}
    partial_names = {names[id(p)] for p in partial}
    layers = MegatronLayers(config, rank.world_size, sequence_parallel=True)
    replace_layers(theirs, layers, mappings, rank.world_size)
    partial = [p for n, p in theirs.named_parameters() if n in partial_names]
    upstream = MegatronSide(partial, layers.config, theirs, compute_loss, lr)
    return Sides(
        mini,
        upstream,
        {rank.group.group_name: "tp", **groups},
        formulas(comparison, ours, rank),
    )


def replace_layers(
    gpt: GPT, layers: MegatronLayers, mappings: Any, world_size: int
) -> None:
    """Put Megatron's parts where the mini's are."""
    for module in list(gpt.modules()):
        for name, child in list(module.named_children()):
            part: Any = None
            if isinstance(child, sequence_parallel.ColumnParallelLinear):
                part = layers.column(child, world_size)
            elif isinstance(child, sequence_parallel.RowParallelLinear):
                part = layers.row(child, world_size)
            elif isinstance(child, sequence_parallel_model.SequenceParallelEntry):
                part = MegatronEntry(mappings, child.dropout)
            elif isinstance(child, sequence_parallel_model.SequenceParallelOutput):
                part = MegatronOutput(mappings, child.weight)
            if part is not None:
                setattr(module, name, part)


def formulas(comparison: Comparison, gpt: GPT, rank: Rank) -> Formulas:
    """Return what a step sends, and slices of everything."""
    config = comparison.config
    tokens = comparison.rows_per_rank * config.max_sequence_length
    traffic = get_sequence_parallel_traffic(config, tokens, rank.world_size)
    layers, hidden = config.num_layers, f"4 B x {tokens * config.hidden_size:,}"
    texts = {
        "all_gather": f"({6 * layers} + 2 activations) x {hidden}",
        "reduce_scatter": f"{4 * layers} activations x {hidden}",
        "all_reduce": f"({6 * layers} + 2 vectors) x 4 B x {config.hidden_size}",
    }
    sent = {op: Formula(n, texts[op]) for op, n in traffic.items()}
    params = list(gpt.parameters())
    kept = trained(params, "parameters of this rank")
    return Formulas.alike(sent, kept)


def check(world_size: int) -> None:
    """Raise ValueError where the model cannot be cut so."""
    sequence_parallel_model.check_sizes(CONFIG, world_size)


COMPARISONS = (
    Comparison(
        mini="sequence_parallel",
        upstream="megatron",
        build=build,
        tolerance=Tolerance(1e-4, "products over tokens are added in another order"),
        config=CONFIG,
        data_parallel=False,
        upstreams=("megatron",),
        shims=("current_device",),
        check=check,
    ),
)
