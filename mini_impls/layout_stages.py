"""The part of a model that a rank of a layout has: groups of two counters, a stage.

Dense and expert layers cut the same ranks in two ways, and only the stages must agree:
a rank has some layers whole in number, and of each its slices, or some of its experts.

    8 ranks, tp 2, dp 2, pp 2, ep 2

    rank              0 1 2 3 4 5 6 7
    tp                01  23  45  67      a layer's weights
    dp (and cp)       02  13  46  57      rows (and parts of sequences)
    pp                04  15  26  37      stages
    ep                01  23  45  67      experts, each once
    expert dp         02  13  46  57      copies of an expert

Follows:
- NVIDIA/Megatron-LM: megatron/core/parallel_state.py (`initialize_model_parallel`)
- NVIDIA/Megatron-LM: megatron/core/models/gpt/gpt_model.py (`pre_process` and its like)

Leaves out:
- the parts of a layer: `layout_gpt.py`; what a step does with them: `layout_train.py`
- building only what a rank holds: slices are taken from a whole model
- several chunks a rank, stages of unequal length, slices of experts (etp)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls.layout import RankLayout, expert_layout, new_groups
from mini_impls.layout_gpt import (
    ColumnParallelLinear,
    LayerGroups,
    LayoutAttention,
    LayoutEmbedding,
    ParallelRoutedMLP,
    RoutedMLP,
    RowParallelLinear,
    positions_of,
)
from mini_impls.model import (
    GPT,
    MLP,
    Batch,
    GPTConfig,
    TransformerLayer,
    build_model,
    shard_batch,
)

# Dimension letters: B sequences of a microbatch, T tokens, D hidden, V vocabulary.

ORDER = "tp-cp-ep-dp-pp"
"""Fastest first: partners of tp are neighbours, stages are far apart."""

# --- 1. two counters over the same ranks ---


@dataclass(frozen=True, slots=True)
class TwoLayouts:
    """How ranks are cut for dense layers, and for experts."""

    dense: RankLayout
    experts: RankLayout

    @classmethod
    def parse(
        cls, world_size: int, sizes: Mapping[str, int], *, order: str = ORDER
    ) -> "TwoLayouts":
        """Return both, of the sizes of tp, cp, pp and ep that are not 1.

        Data parallelism takes what is left of the ranks, in each for itself.
        """
        tp, cp, pp, ep = (sizes.get(name, 1) for name in ("tp", "cp", "pp", "ep"))
        used = tp * cp * pp
        if world_size % used:
            raise ValueError(
                f"{world_size} ranks are not divisible by tp {tp} x cp {cp} x pp {pp}"
            )
        dense = RankLayout.parse(order, tp=tp, cp=cp, dp=world_size // used, pp=pp)
        experts = expert_layout(order, world_size, etp=1, ep=ep, pp=pp)
        if dense.groups("pp") != experts.groups("pp"):
            raise ValueError(f"order {order}: experts would be in other stages")
        return cls(dense, experts)


@dataclass(frozen=True, slots=True)
class LayoutGroups:
    """The groups of one rank, each of them for one purpose."""

    place: Mapping[str, int]
    """Where this rank is along each dimension of dense layers."""
    dp_size: int
    layer: LayerGroups
    pp: dist.ProcessGroup
    dp_cp: dist.ProcessGroup
    """Those that hold the same dense weights, and have a loss of their own each."""
    expert_dp: dist.ProcessGroup
    """Those that hold the same experts."""


def make_groups(layouts: TwoLayouts, rank: int) -> LayoutGroups:
    """Return this rank's groups; every rank of the world must call it."""
    dense = new_groups(layouts.dense, ("tp", "cp", "pp", "dp-cp"), rank)
    experts = new_groups(layouts.experts, ("ep", "dp"), rank)
    return LayoutGroups(
        place=layouts.dense.place(rank),
        dp_size=layouts.dense.sizes["dp"],
        layer=LayerGroups(dense["tp"], dense["cp"], experts["ep"]),
        pp=dense["pp"],
        dp_cp=dense["dp-cp"],
        expert_dp=experts["dp"],
    )


# --- 2. the stage of one rank ---


@dataclass(frozen=True, slots=True)
class LayoutConfig(GPTConfig):
    """Sizes of the model; with experts each MLP is many, of which a token sees one."""

    num_moe_experts: int = 0


def build_layout_model(config: LayoutConfig) -> GPT:
    """Return the whole model, with experts where the config has any."""
    gpt = build_model(config)
    if config.num_moe_experts:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            for layer in gpt.layers:
                layer.add_module("mlp", RoutedMLP(config, config.num_moe_experts))
    return gpt


def cut_layer(layer: TransformerLayer, groups: LayerGroups) -> None:
    """Keep this rank's slices, or its experts."""
    layer.add_module("self_attention", LayoutAttention(layer.self_attention, groups))
    mlp = layer.get_submodule("mlp")
    if isinstance(mlp, RoutedMLP):
        layer.add_module("mlp", ParallelRoutedMLP(mlp, groups))
        return
    assert isinstance(mlp, MLP)
    mlp.add_module("linear_fc1", ColumnParallelLinear(mlp.linear_fc1, groups.tp))
    mlp.add_module("linear_fc2", RowParallelLinear(mlp.linear_fc2, groups.tp))


class LayoutStage(nn.Module):
    """Some layers, cut; the first stage has the embedding, the last the head."""

    def __init__(self, gpt: GPT, groups: LayoutGroups) -> None:
        super().__init__()
        stage, stages = groups.pp.rank(), groups.pp.size()
        self.pre_process, self.post_process = stage == 0, stage == stages - 1
        per_stage = len(gpt.layers) // stages
        mine = range(stage * per_stage, (stage + 1) * per_stage)
        self.layers = nn.ModuleDict({str(i): gpt.layers[i] for i in mine})
        for layer in self.layers.values():
            assert isinstance(layer, TransformerLayer)
            cut_layer(layer, groups.layer)
        if self.pre_process:
            self.embedding = LayoutEmbedding(gpt.embedding, groups.layer.cp)
        if self.post_process:
            self.final_layernorm = gpt.final_layernorm
            self.output_layer = gpt.output_layer

    def forward(self, input_tensor: Tensor) -> Tensor:
        """Map tokens (B, T/cp) or hidden states (B, T/cp, D) to the same, or logits."""
        hidden = self.embedding(input_tensor) if self.pre_process else input_tensor
        for layer in self.layers.values():
            hidden = layer(hidden)  # (B, T/cp, D)
        if self.post_process:
            hidden = self.output_layer(self.final_layernorm(hidden))  # (B, T/cp, V)
        output: Tensor = hidden
        return output


# --- 3. its part of a batch ---


def local_batch(batch: Batch, groups: LayoutGroups) -> Batch:
    """Return this rank's rows of a batch, and its part of each sequence.

    Ranks of tp get the same; those of a stage without embedding or head, for nothing.
    """
    tokens, labels = shard_batch(
        batch, rank=groups.place["dp"], world_size=groups.dp_size
    )  # (B/dp, T) each
    cp = groups.layer.cp
    if cp.size() == 1:
        return tokens, labels
    at = positions_of(cp.rank(), cp.size(), tokens.size(1)).to(tokens.device)
    return tokens[:, at], labels[:, at]  # (B/dp, T/cp) each


def check_sizes(config: LayoutConfig, layouts: TwoLayouts) -> None:
    """Raise ValueError where the model cannot be cut so."""
    sizes = layouts.dense.sizes
    pairs = {
        "query groups": (config.num_query_groups, sizes["tp"]),
        "MLP channels": (config.ffn_hidden_size, sizes["tp"]),
        "tokens of a sequence": (config.max_sequence_length, 2 * sizes["cp"]),
        "layers": (config.num_layers, sizes["pp"]),
        "experts": (config.num_moe_experts, layouts.experts.sizes["ep"]),
    }
    for what, (size, parts) in pairs.items():
        if size % parts:
            raise ValueError(f"{size} {what} are not divisible by {parts}")
    if config.share_embeddings_and_output_weights:
        raise ValueError("tied weights, whose gradients two stages share: not here")
