"""Memory as estimates: training, inference, and model states alone, item by item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from readerkit.estimate.activations import PAPER
from readerkit.estimate.checks import check_amount, check_reserve
from readerkit.estimate.defaults import PRECISION
from readerkit.estimate.fit import check_fit
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import (
    ON_GPU,
    RankMemory,
    layer_name,
    most_loaded,
    named_weights,
    offloaded_bytes,
    rank_layer_bytes,
    rank_memory,
)
from readerkit.estimate.memory_timeline import first_failure
from readerkit.estimate.parameters import SOURCE, parameter_count
from readerkit.estimate.quantity import Number, divide
from readerkit.estimate.rank_layers import layers_of_rank
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import (
    OFFLOAD,
    PRECISIONS,
    Precision,
    idle_stages,
    model_state_bytes,
    precision,
)
from readerkit.wording.numbers import counted, format_bytes

HELD = (
    "weights",
    "gradients",
    "optimizer",
    "gathered units",
    "activations",
    "one layer recomputed",
    "last norm and logits",
)
"""What a GPU holds at the peak of a step."""
OTHER_TOOLS = (
    "GB is 10^9 bytes, GiB 2^30. DeepSpeed's estimators divide by 2^30, print GB, "
    "and count no activations. Megatron-LM's theoretical memory divides by 2^20 "
    "and prints MB, leaves out biases and position tables, and counts a gated "
    "feed-forward's activations as a plain one's."
)


def estimate_training(
    shape: Shape,
    layout: Layout,
    *,
    convention: str = PRECISION,
    gpu_bytes: Number | None = None,
    reserve: Number = 0,
) -> Estimate:
    """Return the memory of the most loaded GPU, item by item.

    Raises:
        EstimateError: a layout that the model cannot be cut into.
    """
    check_fit(shape, layout)
    kept = precision(convention)
    most = most_loaded(shape, layout, kept)
    sheet = Worksheet("memory of the most loaded GPU")
    one, cut = shape.named(), layout.named()
    held = rank_memory(one, cut, kept.named(), most.rank)
    padded = parameter_count(one, vocab=one.padded_vocab(cut.tp))
    sheet.add("parameters", padded, "parameters", SOURCE, "all, as padded for tp")
    add_parameters(sheet, held.dense, held.expert, layout, most.rank)
    _states(sheet, held, layout, kept, convention)
    _activations(sheet, held, one, cut, kept)
    parts = " + ".join(name for name in HELD if name in sheet.names)
    peak = "all that is held at the peak of a step"
    sheet.write(f"total [bytes] = {parts} | {SOURCE} | {peak}")
    sheet.notes.append(
        _other_conventions(
            convention, lambda name: most_loaded(shape, layout, precision(name)).total
        )
    )
    if gpu_bytes is not None:
        add_room(sheet, gpu_bytes, reserve)
        sheet.notes.insert(0, first_failure(most, gpu_bytes, reserve))
    alone = layout.expert_replicas if held.expert else layout.replicas
    sheet.notes += idle_stages(layout.zero, layout.replicas, alone)
    sheet.notes.append(OTHER_TOOLS)
    return sheet.estimate()


def _other_conventions(convention: str, held: Callable[[str], Number]) -> str:
    """Return what is ``held`` by every other custom of counting bytes per parameter."""
    others = (name for name in PRECISIONS if name != convention)
    listed = ", ".join(f"{name} {format_bytes(held(name), 2)}" for name in others)
    return f"the total by other conventions: {listed}"


def add_parameters(
    sheet: Worksheet, dense: Number, expert: Number, layout: Layout, rank: int
) -> None:
    """Write down the parameters on a GPU; those of experts beside the others."""
    where = f"{SOURCE} | pipeline rank {rank} of {layout.pp}, cut over tp {layout.tp}"
    if not expert:
        sheet.write(f"{ON_GPU} [parameters] = dense | {where}", dense=dense)
        return
    where += f", experts over ep {layout.ep}"
    sheet.write(
        f"""
        dense parameters [parameters] = dense | {where}
        experts' parameters [parameters] = expert | {where}
        {ON_GPU} [parameters] = dense parameters + experts' parameters | {where}
        """,
        dense=dense,
        expert=expert,
    )


def _states(
    sheet: Worksheet, held: RankMemory, layout: Layout, kept: Precision, convention: str
) -> None:
    """Write down weights, gradients and optimizer, and what is gathered."""
    custom = f"{kept.source} | {convention}: {kept.says}"
    ranks = counted(layout.replicas, "rank")
    where = f"{custom}; ZeRO stage {layout.zero} over {ranks}"
    where += f", of experts over {layout.expert_replicas}" * bool(held.expert)
    sheet.write(
        f"bytes per parameter [bytes/parameter] = each | {custom}; before sharding",
        each=kept.named().total,
    )
    for name in ("weights", "gradients", "optimizer"):
        if name not in OFFLOAD[layout.offload].takes:
            sheet.write(
                f"{name} [bytes] = {name} | {where}", **{name: getattr(held, name)}
            )
    _offloaded(sheet, layout, kept, held.dense, held.expert)
    if held.gathered:
        sheet.write(
            """
            gathered units [bytes] = gathered
                | Zhao et al. 2304.11277, sections 3.2.1 and 3.4.2
                | a unit is a layer: weights of two in flight, gradients of one
            """,
            gathered=held.gathered,
        )


def _offloaded(
    sheet: Worksheet, layout: Layout, kept: Precision, dense: Number, expert: Number
) -> None:
    """Write down what is kept in CPU memory or on NVMe instead."""
    off = OFFLOAD[layout.offload]
    if off.takes:
        params = named_weights(dense, expert)
        sheet.write(
            f"""
            {off.place}, this GPU's share [bytes] = share | {off.source}
                | {", ".join(off.takes)}; one copy, without the buffers that they
                pass through
            """,
            share=offloaded_bytes(*params, layout.named(), kept.named()),
        )


def _activations(
    sheet: Worksheet, held: RankMemory, shape: Shape, layout: Layout, kept: Precision
) -> None:
    """Write down one layer of each kind, what is in flight of them, and the logits."""
    custom = add_layers(sheet, held, shape, layout, kept)
    cut = f"tp {layout.tp}{', sequence parallel' * layout.shards_sequence}"
    sheet.write(
        f"""
        activations [bytes] = held | {PAPER}
            | in flight under {layout.schedule}, {cut}, cp {layout.cp}; {custom}
        """,
        held=held.activations,
    )
    if held.recomputed:
        sheet.write(
            f"""
            one layer recomputed [bytes] = again | {SOURCE}
                | what recompute dropped, of one layer; the paper leaves it out
            """,
            again=held.recomputed,
        )
    if held.logits:
        sheet.write(
            """
            last norm and logits [bytes] = logits
                | Korthikanti et al. 2205.05198, section 4.3 | fp32 logits
            """,
            logits=held.logits,
        )


def add_layers(
    sheet: Worksheet, held: RankMemory, shape: Shape, layout: Layout, kept: Precision
) -> str:
    """Write down what one layer of each kind keeps; return what it is counted by."""
    flash = "flash attention: no" if layout.flash else "no flash attention: all"
    custom = f"{layout.recompute} recompute; {flash} scores in memory; "
    custom += f"{kept.activation} B an element"
    if shape.window and not layout.flash:
        custom += "; a local layer's scores are a whole square, masked"
    for count, moe in zip(
        layers_of_rank(shape, layout, held.rank), (False, True), strict=True
    ):
        for kind in dict.fromkeys((layout.recompute, "none")) if count else ():
            value = rank_layer_bytes(
                shape, layout, kind, moe=moe, element_bytes=kept.activation
            )
            whole = kind != layout.recompute
            if not whole or (held.recomputed and value > 0):
                name = layer_name(moe=moe, whole=whole)
                named = "one microbatch" + f"; {custom}" * (not whole)
                sheet.add(name, value, "bytes", PAPER, named)
    return custom


def add_room(sheet: Worksheet, gpu_bytes: Number, reserve: Number) -> None:
    """Write down what a GPU offers and what is left of it."""
    sheet.given("GPU memory", check_amount("GPU memory", gpu_bytes))
    sheet.given("r", check_reserve(reserve), "share of a GPU kept free")
    sheet.write(
        f"""
        GPU memory [bytes] = GPU memory | vendor
            | as sold, in 10^9 bytes; nvidia-smi shows more (80 GB: 81,559 MiB)
        usable [bytes] = GPU memory × (1 - r)
            | an assumption: CUDA context, NCCL buffers, fragmentation
            | {reserve:.0%} kept free
        left [bytes] = usable - total | {SOURCE} | what is usable, less the total
        """
    )


def estimate_states(
    *,
    params: Number,
    stage: int,
    world_size: int,
    convention: str,
    model_parallel: int = 1,
    offload: str = "none",
    gpu_bytes: Number | None = None,
    reserve: Number = 0,
) -> Estimate:
    """Return weights, gradients and optimizer of a parameter count alone.

    ``model_parallel`` is tp × pp, over which the parameters are taken to divide evenly.
    """
    check_amount("params", params)
    kept, sheet = precision(convention), Worksheet("model states on one GPU")
    custom, named = f"{kept.source} | {convention}: {kept.says}", kept.named()
    count = sheet.given("N", params, "parameters")
    if model_parallel > 1:
        count = divide(count, sheet.given("tp pp", model_parallel, "tp × pp"))
    ranks = sheet.given("n", world_size, "ranks that share states")
    sheet.write(
        f"bytes per parameter [bytes/parameter] = each | {custom}; before sharding",
        each=named.total,
    )
    names, off = ("weights", "gradients", "optimizer"), OFFLOAD[offload]
    for name, (size, sharded_from) in zip(names, named.sharded, strict=True):
        cut = ranks if stage >= sharded_from and world_size > 1 else 1
        where = f"{off.place}, " * (name in off.takes)
        row = f"{where}{name} [bytes] = held | {custom}; ZeRO stage {stage}"
        sheet.write(row, held=divide(size * count, cut))
    total = " + ".join(name for name in names if name not in off.takes) or "z"
    sheet.given("z", 0, "bytes of states on the GPU")
    if off.takes:
        parts = " + ".join(f"{off.place}, {name}" for name in off.takes)
        sheet.write(
            f"""
            {off.place}, this GPU's share [bytes] = {parts} | {off.source}
                | one copy, without the buffers that it passes through
            """
        )
    sheet.write(f"total [bytes] = {total} | {SOURCE} | no activations")
    sheet.notes += idle_stages(stage, world_size, world_size)
    each = divide(params, model_parallel)
    alike: dict[str, Any] = {"params": each, "stage": stage, "world_size": world_size}
    if not off.takes:
        sheet.notes.append(
            _other_conventions(
                convention, lambda name: model_state_bytes(**alike, convention=name)
            )
        )
    if gpu_bytes is not None:
        add_room(sheet, gpu_bytes, reserve)
        verdict = "fit" if sheet["left"] >= 0 else "do not fit"
        sheet.notes.insert(0, f"the states {verdict}, before any activations")
    return sheet.estimate()
