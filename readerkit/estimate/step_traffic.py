"""What a step of a layout sends: every collective of a rank, for a model's shape."""

from __future__ import annotations

from readerkit.estimate.layout import Layout, check_fit, check_timed
from readerkit.estimate.memory import layers_of_rank, named_weights, rank_weights
from readerkit.estimate.quantity import Number, divide
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import Precision, precision
from readerkit.estimate.volumes import (
    GATHERED,
    GSHARD,
    KORTHIKANTI,
    MEGATRON,
    NARAYANAN,
    RING,
    RING_HOME,
    ULYSSES,
    Traffic,
    dp_traffic,
    tp_traffic,
)


def traffic_of_step(
    shape: Shape,
    layout: Layout,
    *,
    convention: str = "mixed-18",
    no_sync: bool = True,
    rank: int | None = None,
) -> list[Traffic]:
    """Return all that a pipeline rank sends in a step, kind by kind.

    Without a ``rank`` it is what a step waits for: the messages of a rank in the middle
    and both ends of the model, as if one rank had them all.

    Raises:
        EstimateError: a layout that the model cannot be cut into.
    """
    check_fit(shape, layout)
    check_timed(layout)
    kept = precision(convention)
    return [
        *dp_step_traffic(shape, layout, kept, no_sync=no_sync),
        *model_step_traffic(shape, layout, kept, rank=rank),
    ]


def dp_step_traffic(
    shape: Shape, layout: Layout, kept: Precision, *, no_sync: bool = True
) -> list[Traffic]:
    """Return the traffic of data parallelism; experts have replicas of their own."""
    dense, expert = named_weights(*rank_weights(shape, layout, 0))
    groups = ((dense, layout.replicas, ""), (expert, layout.expert_replicas, "experts"))
    return [
        traffic
        for params, ranks, of in groups
        if params and ranks > 1
        for traffic in dp_traffic(
            params=params,
            world_size=ranks,
            stage=layout.zero,
            weight_bytes=kept.weight,
            gradient_bytes=kept.gradient,
            microbatches=layout.microbatches,
            no_sync=no_sync,
            of=of,
        )
    ]


def model_step_traffic(
    shape: Shape, layout: Layout, kept: Precision, *, rank: int | None = None
) -> list[Traffic]:
    """Return the traffic of tensor, pipeline, expert and context parallelism.

    ``rank`` is as in ``traffic_of_step``.
    """
    tokens = layout.rank_sequence * layout.micro_batch
    size = kept.activation * tokens * shape.hidden
    part = divide(size, layout.sequence_shard)
    dense, moe = layers_of_rank(shape, layout, 0)
    m, stages = layout.microbatches, layout.stages_of_rank
    passes, moe_passes = divide((dense + moe) * m, stages), divide(moe * m, stages)
    found: list[Traffic] = []
    if layout.tp > 1:
        recompute, sp = layout.recompute, layout.shards_sequence
        found += tp_traffic(size, passes, layout.tp, sp, recompute)
        found += _tp_ends(layout, size, tokens, rank)
    if layout.pp > 1:
        found += _pp_traffic(shape, layout, kept, part, rank)
    if layout.ep > 1 and moe:
        copies = part * shape.experts_per_token
        why = "dispatch and combine, forward and backward, each layer"
        calls = 4 * moe_passes
        found.append(Traffic("ep", "all-to-all", calls, copies, layout.ep, why, GSHARD))
    if layout.cp > 1:
        found += _cp_traffic(shape, layout, kept, passes, tokens)
    return found


def _pp_traffic(
    shape: Shape, layout: Layout, kept: Precision, size: Number, rank: int | None
) -> list[Traffic]:
    """Return the messages of a pipeline, and the sum of a table at both its ends."""
    at_end = rank in (0, layout.pp - 1)
    v, folded = layout.virtual_stages, layout.schedule == "zb-v"
    # Nothing comes before the model's first chunk, or after its last; in the shape of a
    # V both ends of a rank's two chunks meet on its first rank, or its last.
    each = 2 * v - 1 if at_end else 2 * v
    if folded:
        each = 2 if at_end else 4
    calls = layout.microbatches * each
    why = "an activation on and a gradient back, each microbatch and chunk"
    if at_end:
        why += ", but for the model's end"
    found = [Traffic("pp", "send-recv", calls, size, 2, why, NARAYANAN)]
    if shape.tied_embeddings and not all(layout.ends(0)):
        table = shape.padded_vocab(layout.tp)
        copy = divide(table * shape.hidden * kept.gradient, layout.tp)
        why = "gradient of the tied table, first and last stage"
        found.append(Traffic("pp", "all-reduce", 1, copy, 2, why, MEGATRON, "table"))
    return found


def _cp_traffic(
    shape: Shape, layout: Layout, kept: Precision, passes: Number, tokens: Number
) -> list[Traffic]:
    """Return what shares keys and values: forward once, backward they and gradients.

    A ring hands each block on n - 1 times; the gradients take one hop more, home to
    the rank whose block it is: 3 n - 2 hops.
    """
    n = layout.cp
    if layout.cp_kind == "ulysses":
        each = 2 * (shape.heads + shape.kv_heads) * shape.head_dim
        size = divide(kept.activation * tokens * each, layout.tp)
        why = "queries, keys, values and output, forward and backward, each layer"
        return [Traffic("cp", "all-to-all", 2 * passes, size, n, why, ULYSSES)]
    heads = divide(max(shape.kv_heads, layout.tp), layout.tp)
    block = 2 * kept.activation * tokens * heads * shape.head_dim
    if layout.cp_kind == "all-gather":
        why = "2 a layer: keys and values, forward and backward"
        back = "1 a layer: their gradients"
        return [
            Traffic("cp", "all-gather", 2 * passes, block * n, n, why, GATHERED),
            Traffic("cp", "reduce-scatter", passes, block * n, n, back, GATHERED),
        ]
    why = "3 a layer: keys and values forward, they and their gradients backward"
    home = "1 a layer: the gradients' last hop, to the owner of their block"
    return [
        Traffic("cp", "all-gather", 3 * passes, block * n, n, why, RING),
        Traffic("cp", "send-recv", passes, block, 2, home, RING_HOME, "hop home"),
    ]


def _tp_ends(
    layout: Layout, size: Number, tokens: Number, rank: int | None
) -> list[Traffic]:
    """Return the collectives of the embedding, and of output matrix and loss.

    A rank with both ends of DualPipe's two directions meets each in half of them.
    """
    first, last = (True, True) if rank is None else layout.ends(rank)
    tp, here = layout.tp, 1 if rank is None else layout.stages_of_rank
    m = divide(layout.microbatches, here)
    sp = layout.shards_sequence
    closing = "reduce-scatter" if sp else "all-reduce"
    found: list[Traffic] = []
    if first:
        found.append(
            Traffic("tp", closing, m, size, tp, "forward", MEGATRON, "embedding")
        )
    if last:
        loss = "max, target and sum of each token, fp32"
        found += [
            Traffic("tp", closing, m, size, tp, "backward", MEGATRON, "output"),
            Traffic("tp", "all-reduce", 3 * m, 4 * tokens, tp, loss, MEGATRON, "loss"),
        ]
    if sp and (first or last):
        parts = ("embedding's gradient",) * first
        parts += ("output matrix's input twice",) * last
        calls, why = (first + 2 * last) * m, "; ".join(parts)
        found.append(
            Traffic("tp", "all-gather", calls, size, tp, why, KORTHIKANTI, "both ends")
        )
    return found
