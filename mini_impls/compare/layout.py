"""A GPT on tp x dp x pp beside Megatron's layers and groups, and torch's mesh.

Once more on all five dimensions, tp x cp x pp with experts, beside Megatron's.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist

from mini_impls.compare import megatron
from mini_impls.compare.layout_megatron import build_upstream
from mini_impls.compare.layout_mini import MICROBATCHES, ROWS, MiniSide, build_mini
from mini_impls.compare.layout_torch import TorchSide
from mini_impls.compare.sides import (
    Alone,
    Comparison,
    Formula,
    Formulas,
    Sides,
    Tolerance,
    trained,
)
from mini_impls.compare.steps import StepLog
from mini_impls.demos.layout_traffic import get_layout_traffic
from mini_impls.launch import Rank
from mini_impls.layout_stages import (
    LayoutConfig,
    LayoutGroups,
    TwoLayouts,
    build_layout_model,
    check_sizes,
    make_groups,
)
from mini_impls.layout_train import split_params
from mini_impls.model import GPTConfig
from readerkit.content.vocabulary import Category

LAYERS = 2
SIZES = {2: {"tp": 2}, 4: {"tp": 2, "pp": 2}, 8: {"tp": 2, "pp": 2}}
"""How many ranks are cut how; data parallelism takes the rest."""
FIVE = {
    2: {"cp": 2, "ep": 2},
    4: {"tp": 2, "cp": 2, "ep": 2},
    8: {"tp": 2, "cp": 2, "pp": 2, "ep": 2},
}
"""The same for the model with experts."""
NUM_EXPERTS = 4


# --- Megatron ---


def build_megatron(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini, and the same model on Megatron's groups."""
    config = comparison.config
    assert isinstance(config, LayoutConfig)
    layouts = layouts_of(config, rank.world_size)
    dense, ep = layouts.dense.sizes, layouts.experts.sizes["ep"]
    names = megatron.start(
        rank,
        tensor=dense["tp"],
        pipeline=dense["pp"],
        context=dense["cp"],
        expert=ep,
        expert_tensor=1,
    )
    groups = make_groups(layouts, rank.rank)
    logs = StepLog("mini", rank.rank), StepLog("upstream", rank.rank)
    mini = build_mini(rank, comparison, groups, logs[0])
    upstream = build_upstream(rank, comparison, groups, logs[1])
    state: Any = import_module("megatron.core.parallel_state")
    # Either may have one rank, over which Megatron reduces too.
    edp = state.get_expert_data_parallel_group()
    dp = state.get_data_parallel_group(with_context_parallel=True)
    # No expert is cut here, so a whole set of slices is a whole set of experts.
    names = {g: "ep" if label == "etp x ep" else label for g, label in names.items()}
    names |= {**named(groups), **named_groups({"edp": edp, "dp": dp})}
    due = of_megatron(formulas(config, mini, groups), config, mini, groups)
    return Sides(mini, upstream, names, due)


def layouts_of(config: LayoutConfig, world_size: int) -> TwoLayouts:
    """Return how so many ranks are cut for a model."""
    sizes = FIVE if config.num_moe_experts else SIZES
    return TwoLayouts.parse(world_size, sizes[world_size])


def named(groups: LayoutGroups) -> dict[str, str]:
    """Return what the mini's groups are for, by their names."""
    layer = groups.layer
    made = {"ep": layer.ep, "edp": groups.expert_dp, "tp": layer.tp, "cp": layer.cp}
    return named_groups({**made, "pp": groups.pp, "dp": groups.dp_cp})


def named_groups(made: Mapping[str, dist.ProcessGroup]) -> dict[str, str]:
    """Return the labels of groups by the names that torch gave them."""
    return {str(group.group_name): label for label, group in made.items()}


# --- torch ---


def build_torch(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini, and the same model cut by torch along a mesh."""
    config = comparison.config
    assert isinstance(config, LayoutConfig)
    groups = make_groups(layouts_of(config, rank.world_size), rank.rank)
    logs = StepLog("mini", rank.rank), StepLog("upstream", rank.rank)
    mini = build_mini(rank, comparison, groups, logs[0])
    upstream = TorchSide(
        rank, config, groups, MICROBATCHES, logs[1], comparison.learning_rate
    )
    of_mesh = {name: upstream.mesh.get_group(name) for name in ("tp", "pp", "dp")}
    names = {**named(groups), **named_groups(of_mesh)}
    sizes_of_params = [param.numel() for param in mini.trainer.stage.parameters()]
    due = of_torch(formulas(config, mini, groups), groups, sizes_of_params)
    return Sides(mini, upstream, names, due)


# --- both ---


def formulas(config: LayoutConfig, mini: MiniSide, groups: LayoutGroups) -> Formulas:
    """Return what a step of this rank sends, and slices of everything."""
    stage = mini.trainer.stage
    traffic = get_layout_traffic(
        config, stage, groups, microbatches=MICROBATCHES, rows=ROWS
    )
    text = (
        f"{MICROBATCHES} microbatches x {len(stage.layers)} layers of f and g, "
        "neighbours of the stage, gradients of the ranks with a loss of their own"
    )
    sent = {op: Formula(n, text) for op, n in traffic.items()}
    kept = trained(list(stage.parameters()), "parameters of this rank's slices")
    return Formulas.alike(sent, kept)


def of_megatron(
    expected: Formulas, config: LayoutConfig, mini: MiniSide, groups: LayoutGroups
) -> Formulas:
    """Return the formulas of Megatron, which reduces over a group of one rank too.

    Beside tokens and weights it gathers who goes where, a byte for each expert; and it
    adds up the routers' gradients once a step, the mini once a microbatch.
    """
    stage = mini.trainer.stage
    sent = dict(expected.payload["upstream"])
    more, texts = Counter[str](), dict[str, str]()
    for params, group, what in zip(
        split_params(stage),
        (groups.dp_cp, groups.expert_dp),
        ("parameters", "parameters of experts"),
        strict=True,
    ):
        if params and group.size() == 1:
            more["all_reduce"] += 4 * sum(param.numel() for param in params)
            texts["all_reduce"] = f"{what}, to this rank itself"
    if config.num_moe_experts:
        tp, ep = groups.layer.tp.size(), groups.layer.ep.size()
        tokens = ROWS * config.max_sequence_length // groups.layer.cp.size() // tp
        layers = len(stage.layers)
        of_map = MICROBATCHES * layers * ep * tokens * config.num_moe_experts
        more["all_gather"] += of_map
        texts["all_gather"] = f"{of_map:,} B of who goes where"
        if tp > 1:
            router = 4 * config.num_moe_experts * config.hidden_size * layers
            more["all_reduce"] -= (MICROBATCHES - 1) * router
            texts["all_reduce"] = f"routers' gradients of {router:,} B once"
    for op, text in texts.items():
        usual = sent[op]
        sent[op] = Formula(usual.bytes + more[op], f"{usual.text}; {text}")
    return replace(expected, payload={**expected.payload, "upstream": sent})


def of_torch(expected: Formulas, groups: LayoutGroups, sizes: list[int]) -> Formulas:
    """Return the formulas of FSDP2: shards, gathered and their gradients scattered."""
    dp, numel = groups.dp_cp.size(), sum(sizes)
    if dp == 1:
        return expected
    sent = dict(expected.payload["upstream"])
    usual = sent["all_reduce"]
    text = f"4 B x {numel:,} parameters of this rank's slices, once a step"
    sent["all_reduce"] = Formula(usual.bytes - 4 * numel, "f and g alone")
    sent["all_gather"] = sent["reduce_scatter"] = Formula(4 * numel, text)
    shard = Formula(4 * numel // dp, f"4 B x {numel:,} / {dp} ranks")
    state = f"2 moments x 4 B x {numel:,} / {dp} ranks + a 4 B step count x"
    kept: dict[Category, Formula] = {
        "parameters": shard,
        "gradients": shard,
        "optimizer state": Formula(
            8 * numel // dp + 4 * len(sizes), f"{state} {len(sizes)}"
        ),
    }
    return Formulas(
        {**expected.payload, "upstream": sent}, {**expected.held, "upstream": kept}
    )


def check(config: LayoutConfig, world_size: int) -> None:
    """Raise ValueError where ranks are not cut here."""
    if world_size not in SIZES:
        known = ", ".join(map(str, SIZES))
        raise ValueError(f"layouts are compared on {known} ranks, not {world_size}")
    check_sizes(config, layouts_of(config, world_size))


def resize(comparison: Comparison, world_size: int) -> Comparison:
    """Return the comparison with microbatches for each rank of data parallelism."""
    assert isinstance(comparison.config, LayoutConfig)
    dp = layouts_of(comparison.config, world_size).dense.sizes["dp"]
    return replace(
        comparison,
        microbatches=MICROBATCHES * dp,
        rows_per_rank=ROWS * MICROBATCHES * dp,
    )


def alone(config: GPTConfig, microbatches: int, device: torch.device) -> Alone:
    """Return the whole model in one process."""
    assert isinstance(config, LayoutConfig)
    return Alone(build_layout_model(config).to(device))


def comparison(upstream: str, *, num_moe_experts: int = 0, **rest: Any) -> Comparison:
    """Return one of them."""
    config = LayoutConfig(num_layers=LAYERS, num_moe_experts=num_moe_experts)
    return Comparison(
        mini="layout",
        upstream=upstream,
        config=config,
        data_parallel=False,
        uneven=True,
        covers=frozenset({"groups of some of the ranks"}),
        alone=alone,
        check=partial(check, config),
        resize=resize,
        **rest,
    )


SHIMS = ("current_device", "synchronize", "cuda_is_cpu")
OF_BUFFERS = Tolerance(
    1e-4, "gradients lie in another order in a buffer, so sums have another"
)
COMPARISONS = (
    comparison(
        "megatron",
        build=build_megatron,
        tolerance=OF_BUFFERS,
        upstreams=("megatron",),
        shims=SHIMS,
    ),
    comparison(
        "megatron_experts",
        num_moe_experts=NUM_EXPERTS,
        build=build_megatron,
        tolerance=OF_BUFFERS,
        upstreams=("megatron",),
        shims=(*SHIMS, "no_general_gemm", "eager"),
    ),
    comparison(
        "torch",
        build=build_torch,
        tolerance=Tolerance(
            1e-4, "attention by a mask and by a flag round apart, and AdamW divides"
        ),
    ),
)
