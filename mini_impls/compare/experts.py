"""Experts on many ranks beside Megatron's MoE layer, its dispatchers and its router."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mini_impls import experts
from mini_impls.compare import megatron
from mini_impls.compare.sides import (
    SIDES,
    Alone,
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    Held,
    SetPhase,
    Sides,
    Tolerance,
    trained,
)
from mini_impls.demos.formulas import get_expert_traffic
from mini_impls.expert_dispatch import AllToAllDispatcher
from mini_impls.expert_routing import ExpertsConfig, update_expert_biases
from mini_impls.launch import Rank
from mini_impls.model import GPT, Batch, GPTConfig
from readerkit.content.vocabulary import SideName

NUM_EXPERTS = 4
"""Where ranks can share them; two a rank otherwise."""


@dataclass(frozen=True, slots=True)
class ExpertLayout:
    """How ranks are cut, and by which dispatcher tokens travel."""

    dispatcher: Literal["alltoall", "allgather"]
    ep: int
    etp: int = 1


# --- the mini ---


class MiniSide(DataParallelSide):
    """Ours; keeps what each step's routing sent where."""

    def __init__(self, *args: Any, groups: experts.ExpertGroups) -> None:
        super().__init__(*args)
        self.groups = groups
        self.copies: list[int] = []
        """Of each step: what all-to-alls carried, summed over layers."""

    def step(self, batch: Batch, set_phase: SetPhase) -> float:
        """Take a step, and note the sizes that its last forward found."""
        loss = super().step(batch, set_phase)
        ways = [m.dispatcher for m in self.module.modules() if hasattr(m, "dispatcher")]
        routed = [way for way in ways if isinstance(way, AllToAllDispatcher)]
        both = [(sum(way.input_splits), sum(way.output_splits)) for way in routed]
        self.copies.append(sum(map(max, both)))
        return loss

    def finish_gradients(self) -> None:
        """Add up what several ranks have gradients of; shift the biases."""
        assert isinstance(self.module, GPT)
        experts.finish_gradients(self.module, self.groups)


def build_mini(rank: Rank, comparison: Comparison, layout: ExpertLayout) -> MiniSide:
    """Return the mini."""
    assert isinstance(comparison.config, ExpertsConfig)
    groups = experts.make_groups(rank.group, ep=layout.ep, etp=layout.etp)
    gpt = experts.build_moe_model(comparison.config).to(rank.device)
    experts.expert_parallel(gpt, groups, layout.dispatcher)
    optimizer = torch.optim.AdamW(gpt.parameters(), comparison.learning_rate)
    return MiniSide(rank, gpt, gpt, optimizer, groups=groups)


# --- Megatron ---


class MegatronSide(DataParallelSide):
    """Megatron's layers under its DDP, which has buffers of their own for experts."""

    def __init__(self, ddp_model: Any, config: Any, *args: Any) -> None:
        super().__init__(*args)
        self.ddp, self.config = ddp_model, config
        self.finalize: Any = import_module(
            "megatron.core.distributed.finalize_model_grads"
        )

    def zero_grad(self) -> None:
        """Zero the buffers, as Megatron's training loop does before each step."""
        self.ddp.zero_grad_buffer()
        super().zero_grad()

    def finish_gradients(self) -> None:
        """Finish as `finalize_model_grads` does, and let a plain optimizer see it."""
        self.ddp.finish_grad_sync()
        if self.config.moe_router_enable_expert_bias:
            with torch.no_grad():
                self.finalize._update_router_expert_bias([self.ddp], self.config)
            self.finalize.reset_model_temporary_tensors(self.config, [self.ddp])
        for param in self.module.parameters():
            param.grad = param.main_grad  # type: ignore[attr-defined]

    def parameters(self) -> dict[str, Tensor]:
        """Return all parameters, under the mini's names."""
        return {
            self.name(name): tensor for name, tensor in super().parameters().items()
        }

    def gradients(self) -> dict[str, Tensor]:
        """Return all gradients, under the mini's names."""
        return {self.name(name): tensor for name, tensor in super().gradients().items()}

    def name(self, name: str) -> str:
        """Return what the mini calls a parameter: it numbers experts over all ranks."""
        before, found, rest = name.partition(".mlp.layer.experts.local_experts.")
        if not found:
            return name.replace(".mlp.layer.", ".mlp.")
        index, _, weight = rest.partition(".")
        first = self.module.layers[0].mlp.layer.local_expert_indices[0]  # type: ignore
        return f"{before}.mlp.experts.{first + int(index)}.{weight}"

    def held(self) -> Held:
        """Return the buffers as gradients."""
        buffers = [*self.ddp.buffers, *self.ddp.expert_parallel_buffers]
        return {**super().held(), "gradients": [each.grad_data for each in buffers]}


class WithoutBias(nn.Module):
    """Megatron's MoE layer, which returns a bias besides: None here."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        output: Tensor = self.layer(hidden)[0]
        return output


def make_config(config: ExpertsConfig, layout: ExpertLayout) -> Any:
    """Return Megatron's configuration of the same model."""
    transformer: Any = import_module("megatron.core.transformer")
    has_bias = config.moe_router_bias_update_rate > 0
    return transformer.TransformerConfig(
        num_layers=config.num_layers,
        hidden_size=config.hidden_size,
        num_attention_heads=config.num_attention_heads,
        num_moe_experts=config.num_moe_experts,
        moe_router_topk=config.moe_router_topk,
        moe_ffn_hidden_size=config.moe_ffn_hidden_size,
        moe_token_dispatcher_type=layout.dispatcher,
        moe_router_load_balancing_type=(
            "aux_loss" if config.moe_aux_loss_coeff else "none"
        ),
        moe_aux_loss_coeff=config.moe_aux_loss_coeff,
        moe_router_score_function=config.moe_router_score_function,
        moe_router_enable_expert_bias=has_bias,
        moe_router_bias_update_rate=config.moe_router_bias_update_rate,
        moe_expert_capacity_factor=config.moe_expert_capacity_factor,
        expert_model_parallel_size=layout.ep,
        expert_tensor_parallel_size=layout.etp,
        add_bias_linear=False,
        use_cpu_initialization=True,
        perform_initialization=False,
        gradient_accumulation_fusion=False,
    )


def make_layer(mini: experts.ParallelMoELayer, config: Any) -> nn.Module:
    """Return Megatron's layer with the weights of the mini's."""
    layers: Any = import_module("megatron.core.tensor_parallel.layers")
    moe: Any = import_module("megatron.core.transformer.moe.moe_layer")
    of_experts: Any = import_module("megatron.core.transformer.moe.experts")
    mlp: Any = import_module("megatron.core.transformer.mlp")
    spec: Any = import_module("megatron.core.transformer.spec_utils")
    linear = mlp.MLPSubmodules(
        linear_fc1=layers.ColumnParallelLinear, linear_fc2=layers.RowParallelLinear
    )
    sequential = spec.ModuleSpec(of_experts.SequentialMLP, submodules=linear)
    layer = moe.MoELayer(config, moe.MoESubmodules(experts=sequential))
    theirs = [layer.router.weight]
    for expert in layer.experts.local_experts:
        theirs += [expert.linear_fc1.weight, expert.linear_fc2.weight]
    with torch.no_grad():
        for param, ours in zip(theirs, mini.parameters(), strict=True):
            param.copy_(ours)
    return WithoutBias(layer)


def build(
    rank: Rank, comparison: Comparison, cut: Callable[[int], ExpertLayout]
) -> Sides:
    """Return the mini, and the same model with Megatron's MoE layers under its DDP."""
    layout = cut(rank.world_size)
    names = megatron.start(rank, expert=layout.ep, expert_tensor=layout.etp)
    distributed: Any = import_module("megatron.core.distributed")
    mini, source = (build_mini(rank, comparison, layout) for _ in range(2))
    assert isinstance(comparison.config, ExpertsConfig)
    config = make_config(comparison.config, layout)
    gpt = source.module
    assert isinstance(gpt, GPT)
    for layer in gpt.layers:
        ours = layer.get_submodule("mlp")
        assert isinstance(ours, experts.ParallelMoELayer)
        layer.add_module("mlp", make_layer(ours, config).to(rank.device))
    settings = distributed.DistributedDataParallelConfig(overlap_grad_reduce=False)
    model = distributed.DistributedDataParallel(config, settings, gpt)
    optimizer = torch.optim.AdamW(gpt.parameters(), comparison.learning_rate)
    upstream = MegatronSide(model, config, rank, model, gpt, optimizer)
    groups = mini.groups
    of_mini = {
        "dp": groups.all,
        "ep": groups.ep,
        "etp": groups.etp,
        "etp x ep": groups.etp_ep,
        "edp": groups.edp,
    }
    state: Any = import_module("megatron.core.parallel_state")
    of_megatron = {  # the first may have one rank, the second has those of dp here
        "edp": state.get_expert_data_parallel_group(),
        "dp": state.get_tensor_and_data_parallel_group(with_context_parallel=True),
    }
    for found in (of_mini, of_megatron):
        names |= {group.group_name: label for label, group in found.items()}
    due = partial(formulas, mini, comparison, layout)
    return Sides(mini, upstream, names, due(None), of_traced_step=due)


# --- what is due ---


def formulas(
    mini: MiniSide, comparison: Comparison, layout: ExpertLayout, step: int | None
) -> Formulas:
    """Return what a step sends, by what its routing found; without one what is kept."""
    gpt, config, groups = mini.module, comparison.config, mini.groups
    assert isinstance(gpt, GPT) and isinstance(config, ExpertsConfig)
    kept = trained(list(gpt.parameters()))
    if step is None:
        return Formulas.alike({}, kept)
    tokens = comparison.rows_per_rank * config.max_sequence_length
    sent: dict[str, list[Formula]] = {
        op: [Formula(n, f"{n:,} B of tokens, weights and choices that all ranks get")]
        for op, n in get_expert_traffic(
            config, tokens, groups, layout.dispatcher
        ).items()
    }
    if layout.dispatcher == "alltoall":
        # A call counts the larger of what it sends and receives. Tokens go and come
        # back, forward and backward; weights go, and gradients of them come back.
        copies, hidden = mini.copies[step], config.hidden_size
        text = f"{copies:,} copies that went or came x 4 B x (4 x {hidden} + 2)"
        sent["all_to_all"] = [Formula(copies * 4 * (4 * hidden + 2), text)]
    dense, of_experts = (sum(p.numel() for p in ps) for ps in experts.split_params(gpt))
    summed = [Formula(4 * dense, f"4 B x {dense:,} dense gradients")]
    if config.moe_router_bias_update_rate:
        counts = config.num_layers * config.num_moe_experts
        summed.append(Formula(4 * counts, f"4 B x {counts} counts of tokens"))
    shared = Formula(4 * of_experts, f"4 B x {of_experts:,} gradients of experts")
    in_mini = [*summed, shared] if groups.edp.size() > 1 else summed
    payload: dict[SideName, dict[str, Formula]] = {
        "mini": add_up({**sent, "all_reduce": in_mini}),
        # Its buffer of experts is reduced over a group of one rank, too.
        "upstream": add_up({**sent, "all_reduce": [*summed, shared]}),
    }
    return Formulas(payload, dict.fromkeys(SIDES, kept))


def add_up(parts: dict[str, list[Formula]]) -> dict[str, Formula]:
    """Return one formula for each operation."""
    return {
        op: Formula(sum(f.bytes for f in found), " + ".join(f.text for f in found))
        for op, found in parts.items()
    }


# --- all ---


def in_pairs(world_size: int) -> ExpertLayout:
    """Return pairs of ranks with every expert, where ranks come in pairs."""
    return ExpertLayout("alltoall", ep=world_size if world_size % 2 else 2)


def whole(world_size: int) -> ExpertLayout:
    """Return every expert once."""
    return ExpertLayout("alltoall", ep=world_size)


def in_slices(world_size: int) -> ExpertLayout:
    """Return pairs of slices on pairs of ranks, where ranks come in fours.

    Megatron takes slices for replicas where ep is 1, so two ranks share none. Behind
    its all-to-all ranks would gather rows of unlike sizes, which gloo refuses.
    """
    ep = world_size if world_size % 2 else 2
    return ExpertLayout("allgather", ep=ep, etp=1 if world_size % 4 else 2)


def resize(comparison: Comparison, world_size: int) -> Comparison:
    """Return the comparison with experts that so many ranks can share."""
    assert isinstance(comparison.config, ExpertsConfig)
    num_experts = NUM_EXPERTS if NUM_EXPERTS % world_size == 0 else 2 * world_size
    config = replace(comparison.config, num_moe_experts=num_experts)
    return replace(comparison, config=config)


def alone(config: GPTConfig, microbatches: int, device: torch.device) -> Alone:
    """Return all experts in one process, and what shifts their biases."""
    assert isinstance(config, ExpertsConfig)
    gpt = experts.build_moe_model(config, microbatches=microbatches).to(device)
    shift = partial(update_expert_biases, experts.routers(gpt), None)
    return Alone(gpt, shift)


SHIMS = ("current_device", "one_stream", "listed_splits", "no_general_gemm", "eager")
TOLERANCE = Tolerance(
    1e-4,
    "sums of more than two ranks are made in another order, and AdamW divides small "
    "sums by their size",
)
OF_TWO_RANKS = Tolerance(0.0, "the same products and sums in the same order")


def comparison(
    upstream: str,
    config: ExpertsConfig,
    cut: Callable[[int], ExpertLayout],
    **rest: Any,
) -> Comparison:
    """Return one of them."""
    return Comparison(
        mini="experts",
        upstream=upstream,
        build=partial(build, cut=cut),
        config=replace(config, num_moe_experts=NUM_EXPERTS),
        tolerance=TOLERANCE,
        of_two_ranks=OF_TWO_RANKS,
        upstreams=("megatron",),
        shims=SHIMS,
        resize=resize,
        alone=alone,
        uneven=True,
        **rest,
    )


COMPARISONS = (
    comparison(
        "megatron_alltoall",
        ExpertsConfig(moe_aux_loss_coeff=0.01),
        in_pairs,
    ),
    comparison(
        "megatron_allgather",
        ExpertsConfig(moe_aux_loss_coeff=0.01, moe_expert_capacity_factor=1.0),
        in_slices,
    ),
    comparison(
        "megatron_bias",
        ExpertsConfig(
            moe_router_score_function="sigmoid", moe_router_bias_update_rate=0.001
        ),
        whole,
    ),
)
