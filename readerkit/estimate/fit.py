"""Whether a model can be cut by a layout: every reason why it cannot."""

from __future__ import annotations

from collections.abc import Iterator

from mini_impls.zero_bubble_orders import ORDERS
from readerkit.errors import EstimateError
from readerkit.estimate.layout import Layout, stage_layers
from readerkit.estimate.schedules import CHUNKED
from readerkit.estimate.shape import Shape
from readerkit.estimate.zero_bubble import check_sizes


def misfits(shape: Shape, layout: Layout) -> list[str]:
    """Return every reason why a model cannot be cut like this; none: it can."""
    return [
        *_tensor_misfits(shape, layout),
        *_context_misfits(shape, layout),
        *_recompute_misfits(shape, layout),
        *_expert_misfits(shape, layout),
        *_stage_misfits(shape, layout),
        *_schedule_misfits(layout),
    ]


def check_fit(shape: Shape, layout: Layout) -> None:
    """Raise where a model cannot be cut like this.

    Raises:
        EstimateError: with every reason.
    """
    found = misfits(shape, layout)
    if found:
        raise EstimateError("\n".join(found))


def _tensor_misfits(shape: Shape, layout: Layout) -> Iterator[str]:
    """Yield what keeps heads and inner sizes from tensor-parallel ranks."""
    tp, of_expert = layout.tp, layout.etp or layout.tp
    if shape.heads % tp:
        yield f"tp: got {tp}, expected a divisor of {shape.heads} (heads)"
    if shape.kv_heads % tp and tp % shape.kv_heads:
        yield (
            f"tp: got {tp}, expected a divisor or a multiple of {shape.kv_heads} "
            "(key-value heads)"
        )
    if shape.experts and shape.expert_ffn % of_expert:
        yield (
            f"{'etp' if layout.etp else 'tp'}: got {of_expert}, expected a divisor of "
            f"{shape.expert_ffn} (expert_ffn)"
        )
    if shape.moe_layers < shape.layers and shape.ffn % tp:
        yield f"tp: got {tp}, expected a divisor of {shape.ffn} (ffn)"
    if shape.shared_ffn % tp:
        yield f"tp: got {tp}, expected a divisor of {shape.shared_ffn} (shared_ffn)"


def _context_misfits(shape: Shape, layout: Layout) -> Iterator[str]:
    """Yield what keeps a sequence from the ranks that share it."""
    tp, cp, sequence = layout.tp, layout.cp, layout.sequence
    if sequence % cp:
        yield f"cp: got {cp}, expected a divisor of the sequence {sequence}"
    elif cp > 1 and layout.cp_kind != "ulysses" and sequence % (2 * cp):
        yield (
            f"sequence: got {sequence}, expected a multiple of 2 × cp {cp}: each rank "
            "has a block from both ends, so that all have as many scores"
        )
    elif layout.shards_sequence and sequence // cp % tp:
        yield (
            f"tp: got {tp}, expected a divisor of the rank's sequence "
            f"{sequence // cp} (sequence parallel)"
        )
    if layout.cp_kind == "ulysses" and cp > 1:
        for heads, of in ((shape.heads, "heads"), (shape.kv_heads, "key heads")):
            if heads % (cp * tp):
                yield (
                    f"cp: got {cp} × tp {tp}, expected a divisor of {heads} "
                    f"({of}; ulysses)"
                )


def _recompute_misfits(shape: Shape, layout: Layout) -> Iterator[str]:
    """Yield the modules to recompute that a model has not."""
    modules = layout.recompute.split(",")
    if "mla_up_proj" in modules and not shape.kv_rank:
        yield "recompute: got mla_up_proj, expected a model with latents"
    if not shape.experts and {"moe", "moe_act", "shared_experts"}.intersection(modules):
        yield f"recompute: got {layout.recompute}, expected no experts' modules"


def _expert_misfits(shape: Shape, layout: Layout) -> Iterator[str]:
    """Yield what keeps experts from ranks of their own."""
    tp, ep, etp, sharers = layout.tp, layout.ep, layout.etp, layout.dp * layout.cp
    if ep > 1 and not shape.experts:
        yield f"ep: got {ep}, expected 1 (a dense model has no experts)"
    elif ep > 1 and shape.experts % ep:
        yield f"ep: got {ep}, expected a divisor of {shape.experts} (experts)"
    if layout.folds_experts and tp > 1 and not layout.sequence_parallel:
        yield (
            f"etp: got {etp} beside tp {tp}, expected sequence parallelism: "
            "experts take tokens from ranks that each have their own"
        )
    if etp and not shape.experts:
        yield f"etp: got {etp}, expected none (no experts)"
    elif etp and sharers * tp % layout.expert_ranks:
        yield (
            f"ep: got {ep} with etp {etp}, expected a divisor of dp × cp × tp "
            f"{sharers * tp} together"
        )
    elif not etp and sharers % ep:
        yield f"ep: got {ep}, expected a divisor of dp × cp {sharers}"


def _stage_misfits(shape: Shape, layout: Layout) -> Iterator[str]:
    """Yield what keeps the layers from their stages."""
    p, twice, again = layout.pp, layout.schedule == "zb-v", layout.recompute_layers
    given = f"got {layout.first_layers}, {layout.last_layers}, expected"
    is_uneven = layout.first_layers or layout.last_layers
    if is_uneven and p == 1:
        yield f"first_layers, last_layers: {given} none of one stage"
        return
    try:
        counts = stage_layers(
            *(shape.layers, 2 * p if twice else p, layout.virtual_stages),
            *(layout.first_layers, layout.last_layers),
        )
    except EstimateError as error:
        yield "zb-v has two stages a rank: " * twice + str(error)
    else:
        if again * layout.virtual_stages > max(counts):
            most = max(counts) // layout.virtual_stages
            yield f"recompute_layers: got {again}, expected at most {most} (of a chunk)"
    if is_uneven and all(layout.ends(0)):
        yield (
            f"first_layers, last_layers: {given} none under {layout.schedule}, "
            "whose first rank has both ends"
        )


def _schedule_misfits(layout: Layout) -> Iterator[str]:
    """Yield what a schedule cannot do with these stages and microbatches."""
    schedule, p, m, v = layout.pipeline[:4]
    if schedule not in ("1f1b", "interleaved") and p == 1:
        yield f"schedule: got {schedule}, expected pp above 1"
    elif schedule in ORDERS:
        try:
            check_sizes(schedule, p, m)
        except EstimateError as error:
            yield str(error)
    if schedule not in CHUNKED:
        if v > 1:
            chunked = " and ".join(CHUNKED)
            yield f"virtual_stages: got {v}, expected 1 ({chunked} have several)"
    elif p == 1 or v == 1:
        yield f"schedule: got {schedule}, expected pp and virtual_stages above 1"
    elif m % p:
        yield f"microbatches: got {m}, expected a multiple of pp {p}"
