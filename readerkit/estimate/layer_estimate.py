"""The activations that one layer keeps, tensor by tensor; and the largest model."""

from __future__ import annotations

from readerkit.estimate.activations import PAPER, LayerKind, layer_activations
from readerkit.estimate.checks import check_amount, check_reserve
from readerkit.estimate.defaults import PRECISION
from readerkit.estimate.fit import check_fit
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.layout import Layout
from readerkit.estimate.quantity import Number, divide
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import ZERO, idle_stages, precision
from readerkit.wording.numbers import counted


def estimate_layers(
    shape: Shape, layout: Layout, *, convention: str = PRECISION
) -> list[Estimate]:
    """Return what one layer of each kind keeps of one microbatch on one GPU.

    Raises:
        EstimateError: a layout that the model cannot be cut into.
    """
    check_fit(shape, layout)
    kinds = {"a layer": shape.plain_layers, "an expert layer": shape.moe_layers}
    return [
        _layer(shape, layout, name, convention) for name, many in kinds.items() if many
    ]


def _layer(shape: Shape, layout: Layout, name: str, convention: str) -> Estimate:
    sheet, cut = Worksheet(f"activations of {name}"), layout.named()
    kept = precision(convention).activation
    kind = LayerKind(
        cut.rank_sequence,
        cut.micro_batch,
        cut.tp,
        layout.shards_sequence,
        layout.recompute,
        layout.flash,
        name != "a layer",
        kept,
        cut.ranks_of_expert if layout.gathers_copies else 1,
    )
    flash = "flash attention" if layout.flash else "no flash attention"
    custom = f"one microbatch; {layout.recompute} recompute; {flash}"
    if shape.window and not layout.flash:
        custom += "; a local layer's scores are a whole square, masked"
    for part, held in layer_activations(shape.named(), kind).items():
        if held:
            sheet.add(part, held, "bytes", PAPER, f"{custom}; {kept} B an element")
    parts = " + ".join(item.name for item in sheet.items)
    sheet.write(f"kept by {name} [bytes] = {parts} | {PAPER} | {custom}")
    return sheet.estimate()


def estimate_largest(
    *,
    gpu_bytes: Number,
    reserve: Number,
    stage: int,
    world_size: int,
    model_parallel: int = 1,
    convention: str = PRECISION,
) -> Estimate:
    """Return how many parameters' states fill a GPU, with no activations in it."""
    sheet, kept = Worksheet("the largest model that fits"), precision(convention)
    sheet.given("GPU memory", check_amount("GPU memory", gpu_bytes), "of one GPU")
    sheet.given("r", check_reserve(reserve), "share of a GPU kept free")
    sheet.given("tp pp", model_parallel, "tp × pp")
    ranks = sheet.given("n", world_size, "ranks that share states")
    shared = f"ZeRO stage {stage} over {counted(world_size, 'rank')}"
    custom = f"{kept.source} | {convention}; {shared}"
    held = sum(
        divide(size, ranks if stage >= sharded_from and world_size > 1 else 1)
        for size, sharded_from in kept.named().sharded
    )
    sheet.write(
        f"""
        held for a parameter [bytes/parameter] = held | {custom}
        usable [bytes] = GPU memory × (1 - r)
            | an assumption: CUDA context, NCCL buffers, fragmentation
            | {reserve:.0%} kept free
        largest [parameters] = floor(usable × tp pp / held for a parameter)
            | {ZERO}, table 2 | states alone: no activations, nothing gathered
        """,
        held=held,
    )
    sheet.notes += idle_stages(stage, world_size, world_size)
    return sheet.estimate()
