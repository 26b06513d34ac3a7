"""Memory as estimates: training, inference, and model states alone, item by item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from readerkit.estimate.activations import PAPER, kv_cache_bytes
from readerkit.estimate.checks import check_amount, check_reserve
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.layout import Layout, check_fit
from readerkit.estimate.memory import (
    ON_GPU,
    RankMemory,
    layer_name,
    layers_of_rank,
    most_loaded,
    rank_layer_bytes,
    rank_memory,
    rank_weights,
)
from readerkit.estimate.parameters import SOURCE, parameter_count
from readerkit.estimate.quantity import Number, Quantity, divide, floor_divide, maximum
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import (
    PRECISIONS,
    Precision,
    model_state_bytes,
    precision,
)
from readerkit.estimate.timeline import first_failure
from readerkit.wording.numbers import format_bytes

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
    convention: str = "mixed-18",
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
    sheet.add("parameters", parameter_count(one), "parameters", SOURCE, "all of them")
    add_parameters(sheet, held.dense, held.expert, layout, most.rank)
    _states(sheet, held, layout, kept, convention)
    _activations(sheet, held, one, cut, kept)
    known = {item.name for item in sheet.items}
    total = sheet.total([name for name in HELD if name in known])
    sheet.add("total", total, "bytes", SOURCE, "all that is held at the peak of a step")
    sheet.notes.append(
        _other_conventions(
            convention, lambda name: most_loaded(shape, layout, precision(name)).total
        )
    )
    if gpu_bytes is not None:
        _room(sheet, gpu_bytes, reserve)
        sheet.notes.insert(0, first_failure(most, kept, gpu_bytes, reserve))
    sheet.notes.append(OTHER_TOOLS)
    return sheet.estimate()


def _other_conventions(convention: str, held: Callable[[str], Number]) -> str:
    """Return what is ``held`` by every other custom of counting bytes per parameter."""
    others = (name for name in PRECISIONS if name != convention)
    listed = ", ".join(f"{name} {format_bytes(held(name), 2)}" for name in others)
    return f"the total by other conventions: {listed}"


def add_parameters(
    sheet: Worksheet, dense: Number, expert: Number, layout: Layout, rank: int
) -> Number:
    """Write down the parameters on a GPU; those of experts beside the others."""
    where = f"pipeline rank {rank} of {layout.pp}, cut over tp {layout.tp}"
    if not expert:
        return sheet.add(ON_GPU, dense, "parameters", SOURCE, where)
    where += f", experts over ep {layout.ep}"
    both = [
        sheet.add(name, parameters, "parameters", SOURCE, where)
        for name, parameters in (
            ("dense parameters", dense),
            ("experts' parameters", expert),
        )
    ]
    return sheet.add(ON_GPU, sum(both), "parameters", SOURCE, where)


def _states(
    sheet: Worksheet, held: RankMemory, layout: Layout, kept: Precision, convention: str
) -> None:
    """Write down weights, gradients and optimizer, and what is gathered."""
    custom = f"{convention}: {kept.says}"
    per_parameter = kept.named().total
    before = f"{custom}; before sharding"
    sheet.add(
        "bytes per parameter", per_parameter, "bytes/parameter", kept.source, before
    )
    where = f"{custom}; ZeRO stage {layout.zero}, {layout.replicas} ranks"
    for name, value in (
        ("weights", held.weights),
        ("gradients", held.gradients),
        ("optimizer", held.optimizer),
    ):
        sheet.add(name, value, "bytes", kept.source, where)
    if held.gathered:
        sheet.add(
            "gathered units",
            held.gathered,
            "bytes",
            "Zhao et al. 2304.11277, sections 3.2.1 and 3.4.2",
            "a unit is a layer: weights of two in flight, gradients of one",
        )


def _activations(
    sheet: Worksheet, held: RankMemory, shape: Shape, layout: Layout, kept: Precision
) -> None:
    """Write down one layer of each kind, what is in flight of them, and the logits."""
    flash = "flash attention: no" if layout.flash else "no flash attention: all"
    custom = f"{layout.recompute} recompute; {flash} scores in memory; "
    custom += f"{kept.activation} B an element"
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
                named = f"one microbatch; {custom}" if not whole else "one microbatch"
                sheet.add(name, value, "bytes", PAPER, named)
    cut = f"tp {layout.tp}{', sequence parallel' * layout.shards_sequence}"
    sheet.add(
        "activations",
        held.activations,
        "bytes",
        PAPER,
        f"in flight under {layout.schedule}, {cut}, cp {layout.cp}; {custom}",
    )
    if held.recomputed:
        sheet.add(
            "one layer recomputed",
            held.recomputed,
            "bytes",
            SOURCE,
            "what recompute dropped, of one layer; the paper leaves it out",
        )
    if held.logits:
        sheet.add(
            "last norm and logits",
            held.logits,
            "bytes",
            "Korthikanti et al. 2205.05198, section 4.3",
            "fp32 logits",
        )


def _room(sheet: Worksheet, gpu_bytes: Number, reserve: Number) -> Number:
    """Write down what a GPU offers and what is left of it; return what is usable."""
    check_amount("GPU memory", gpu_bytes)
    gpu = sheet.add(
        "GPU memory",
        Quantity.given("GPU memory", gpu_bytes),
        "bytes",
        "vendor",
        "as sold, in 10^9 bytes; nvidia-smi shows more (80 GB: 81,559 MiB)",
    )
    share = Quantity.given("r", check_reserve(reserve), "share of a GPU kept free")
    source = "an assumption: CUDA context, NCCL buffers, fragmentation"
    usable = sheet.add(
        "usable", gpu * (1 - share), "bytes", source, f"{reserve:.0%} kept free"
    )
    total = sheet.total(["total"])
    sheet.add("left", usable - total, "bytes", SOURCE, "what is usable, less the total")
    return usable


def estimate_inference(
    shape: Shape,
    *,
    tokens: int,
    batch: int = 1,
    tensor_parallel: int = 1,
    weight_bytes: Number = 2,
    cache_bytes: int = 2,
    gpu_bytes: Number | None = None,
    reserve: Number = 0,
) -> Estimate:
    """Return weights plus KV cache on one GPU; no gradients, no optimizer.

    Raises:
        EstimateError: sizes that do not fit.
    """
    layout = Layout.parse({"tp": tensor_parallel, "sequence_parallel": False})
    check_fit(shape, layout)
    sheet = Worksheet("memory of inference, one GPU")
    one, cut = shape.named(), layout.named()
    params = add_parameters(sheet, *rank_weights(one, cut, 0), layout, 0)
    check_amount("weight_bytes", weight_bytes)
    width = Quantity.given("w", weight_bytes, "bytes of a weight")
    named = f"{weight_bytes:g} B a weight"
    weights = sheet.add("weights", width * params, "bytes", SOURCE, named)
    cache_width = Quantity.given("c", cache_bytes, "bytes of a cached number")
    token_bytes = kv_cache_bytes(
        layers=one.layers,
        kv_heads=one.kv_heads,
        head_dim=one.head_dim,
        tokens=1,
        element_bytes=cache_width,
        tensor_parallel=cut.tp,
    )
    named = f"keys and values of {shape.kv_heads} heads (of {shape.heads}), one token"
    per_token = sheet.add("KV cache per token", token_bytes, "bytes", SOURCE, named)
    length = Quantity.given("T", check_amount("tokens", tokens), "tokens of each")
    sequences = Quantity.given("b", check_amount("batch", batch), "sequences at once")
    cache = per_token * length * sequences
    named = "every sequence at its full length"
    cache = sheet.add("KV cache", cache, "bytes", SOURCE, named)
    sheet.add("total", weights + cache, "bytes", SOURCE, "weights and KV cache alone")
    sheet.notes.append("activations of one token are small and left out")
    if gpu_bytes is not None:
        usable = _room(sheet, gpu_bytes, reserve)
        left = sheet.items[-1].value
        room = maximum(0, floor_divide(usable - weights, per_token))
        sheet.add("tokens that fit beside the weights", room, "tokens", SOURCE, named)
        fits = "fits" if left >= 0 else "does not fit"
        text = f"{format_bytes(left, 2)} left of {format_bytes(float(usable), 2)}"
        sheet.notes.insert(0, f"{fits}: {text} usable")
    return sheet.estimate()


def estimate_states(
    *,
    params: Number,
    stage: int,
    world_size: int,
    convention: str,
    model_parallel: int = 1,
    gpu_bytes: Number | None = None,
    reserve: Number = 0,
) -> Estimate:
    """Return weights, gradients and optimizer of a parameter count alone.

    ``model_parallel`` is tp × pp, over which the parameters are taken to divide evenly.
    """
    check_amount("params", params)
    kept, sheet = precision(convention), Worksheet("model states on one GPU")
    custom, named = f"{convention}: {kept.says}", kept.named()
    count = Quantity.given("N", params, "parameters")
    if model_parallel > 1:
        count = divide(count, Quantity.given("tp pp", model_parallel, "tp × pp"))
    ranks = Quantity.given("n", world_size, "ranks that share states")
    before = f"{custom}; before sharding"
    sheet.add(
        "bytes per parameter", named.total, "bytes/parameter", kept.source, before
    )
    sizes = (
        ("weights", named.weight, 3),
        ("gradients", named.gradient, 2),
        ("optimizer", named.optimizer, 1),
    )
    for name, size, sharded_from in sizes:
        value = size * count
        if stage >= sharded_from and world_size > 1:
            value = divide(value, ranks)
        where = f"{custom}; ZeRO stage {stage}"
        sheet.add(name, value, "bytes", kept.source, where)
    total = sheet.total([name for name, _, _ in sizes])
    sheet.add("total", total, "bytes", SOURCE, "no activations")
    each = divide(params, model_parallel)
    alike: dict[str, Any] = {"params": each, "stage": stage, "world_size": world_size}
    sheet.notes.append(
        _other_conventions(
            convention, lambda name: model_state_bytes(**alike, convention=name)
        )
    )
    if gpu_bytes is not None:
        _room(sheet, gpu_bytes, reserve)
        verdict = "fit" if sheet.items[-1].value >= 0 else "do not fit"
        sheet.notes.insert(0, f"the states {verdict}, before any activations")
    return sheet.estimate()
