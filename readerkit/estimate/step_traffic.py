"""What a step of a layout sends: every collective of a rank, for a model's shape."""

from __future__ import annotations

from readerkit.estimate.defaults import PRECISION
from readerkit.estimate.fit import check_fit
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import named_weights, rank_weights
from readerkit.estimate.quantity import Number, divide
from readerkit.estimate.rank_layers import busiest_rank, layers_of_rank
from readerkit.estimate.recompute import (
    attentions_again,
    blocks,
    blocks_again,
    experts_again,
    feed_forwards,
    layers_again,
    modules_again,
)
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import Precision, precision
from readerkit.estimate.volumes import (
    FOLDED,
    GATHERED,
    GATHERED_HEADS,
    GSHARD,
    KORTHIKANTI,
    LATENTS,
    MEGATRON,
    NARAYANAN,
    RING,
    RING_HOME,
    SUMMED,
    ULYSSES,
    Traffic,
    dp_traffic,
    tp_traffic,
)


def traffic_of_step(
    shape: Shape,
    layout: Layout,
    *,
    convention: str = PRECISION,
    no_sync: bool = True,
    rank: int | None = None,
) -> list[Traffic]:
    """Return all that a pipeline rank sends in a step, kind by kind.

    Without a ``rank`` it is what a step waits for: the layers of the rank that has most
    of them, the messages of one in the middle, and both ends of the model, as if one
    rank had them all.

    Raises:
        EstimateError: a layout that the model cannot be cut into.
    """
    check_fit(shape, layout)
    kept = precision(convention)
    return [
        *dp_step_traffic(shape, layout, kept, no_sync=no_sync, rank=rank),
        *model_step_traffic(shape, layout, kept, rank=rank),
    ]


def dp_step_traffic(
    shape: Shape,
    layout: Layout,
    kept: Precision,
    *,
    no_sync: bool = True,
    rank: int | None = None,
) -> list[Traffic]:
    """Return the traffic of data parallelism; experts have replicas of their own.

    ``rank`` is as in ``traffic_of_step``.
    """
    rank = busiest_rank(shape, layout) if rank is None else rank
    dense, expert = named_weights(*rank_weights(shape, layout, rank))
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
    most = busiest_rank(shape, layout) if rank is None else rank
    dense, moe = held = layers_of_rank(shape, layout, most)
    m = layout.microbatches
    found: list[Traffic] = []

    def passes(layers: Number) -> Number:
        return divide(layers * m, layout.stages_of_rank)

    if layout.tp > 1:
        count, of = blocks, "an attention or feed-forward"
        if shape.kv_rank:
            count, of = feed_forwards, "a feed-forward"
        calls = passes(count(shape, layout, *held))
        again = passes(blocks_again(shape, layout, *held))
        found += tp_traffic(size, calls, again, layout.tp, layout.shards_sequence, of)
        layers, twice = sum(held), sum(layers_again(layout, *held))
        if shape.kv_rank:
            up = layers if "mla_up_proj" in modules_again(layout) else twice
            ways = passes(layers), passes(twice), passes(up)
            found += _tp_latents(shape, layout, kept, ways, tokens)
        elif layout.tp > shape.kv_heads:
            counts = passes(layers), passes(twice)
            found += _tp_heads(shape, layout, kept, counts, tokens)
        found += _tp_ends(shape, layout, size, tokens, rank)
    if layout.pp > 1:
        found += _pp_traffic(shape, layout, kept, part, rank)
    if layout.expert_ranks > 1 and moe:
        counts = passes(moe), passes(experts_again(layout, *held))
        found += _expert_traffic(shape, layout, size, counts)
    if layout.cp > 1:
        counts = passes(dense + moe), passes(attentions_again(layout, *held))
        found += _cp_traffic(shape, layout, kept, counts, tokens)
    return found


def _tp_heads(
    shape: Shape,
    layout: Layout,
    kept: Precision,
    counts: tuple[Number, Number],
    tokens: Number,
) -> list[Traffic]:
    """Return what ranks gather that outnumber key heads.

    The rows are cut all the same, so that a head is on several ranks.
    """
    passes, again = counts
    width = shape.heads + 2 * shape.kv_heads
    size = kept.activation * tokens * width * shape.head_dim
    why = "1 a layer: heads that are cut over several ranks"
    back = "1 a layer: their gradients"
    if again:
        why += ", and again where it is recomputed"
    return [
        Traffic("tp", op, calls, size, layout.tp, each, GATHERED_HEADS, "heads")
        for op, calls, each in (
            ("all-gather", passes + again, why),
            ("reduce-scatter", passes, back),
        )
    ]


def _tp_latents(
    shape: Shape,
    layout: Layout,
    kept: Precision,
    counts: tuple[Number, Number, Number],
    tokens: Number,
) -> list[Traffic]:
    """Return the collectives of an attention that is made from latents.

    Each rank makes the latents of its own tokens; they are what is gathered, for the
    way up to its heads. ``counts`` are passes, those whose forward is run again, and
    those whose way up is.
    """
    (passes, again, up), tp = counts, layout.tp
    each = kept.activation * tokens
    latents = each * ((shape.query_rank or shape.hidden) + shape.kv_rank)
    key, output = each * shape.rope_dim, each * shape.hidden
    more = ", 1 where it is recomputed" if again else ""
    up_more = ", 1 where it is recomputed" if up else ""
    turned = "the part of the key that turns"
    ways: list[tuple[str, Number, Number, str, str]] = [
        ("all-reduce", passes + again, output, f"1 forward{more}", "attention"),
        ("all-reduce", passes, latents, "1 backward", "latents"),
    ]
    if layout.shards_sequence:
        twice = f"1 forward, 1 input again{up_more}"
        ways = [
            ("reduce-scatter", passes + again, output, f"1 forward{more}", "attention"),
            ("all-gather", passes, output, "1 backward", "attention"),
            ("all-gather", 2 * passes + up, latents, twice, "latents"),
            ("reduce-scatter", passes, latents, "1 backward", "latents"),
            ("all-gather", passes + again, key, f"{turned}, forward{more}", "key"),
            ("reduce-scatter", passes, key, f"{turned}, backward", "key"),
        ]
    return [
        Traffic("tp", op, calls, size, tp, f"{why}, each layer", LATENTS, of)
        for op, calls, size, why, of in ways
        if size
    ]


def _expert_traffic(
    shape: Shape, layout: Layout, size: Number, counts: tuple[Number, Number]
) -> list[Traffic]:
    """Return how tokens come to their experts and back, and to all parts of one."""
    ranks, etp = layout.sequence_shard, layout.ranks_of_expert
    copies = divide(size, ranks) * shape.experts_per_token
    gathered = size * shape.experts_per_token if etp == ranks else copies * etp
    passes, again = counts
    more = ", and again where it is recomputed" if again else ""
    found = []
    if layout.ep > 1:
        why = f"dispatch and combine, forward and backward{more}, each layer"
        calls = 4 * passes + 2 * again
        found.append(Traffic("ep", "all-to-all", calls, copies, layout.ep, why, GSHARD))
    if layout.gathers_copies and etp > 1:
        why = f"copies of tokens for every part of an expert{more}"
        found += [
            Traffic("etp", op, 2 * passes + again, gathered, etp, why, FOLDED)
            for op in ("all-gather", "reduce-scatter")
        ]
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
    shape: Shape,
    layout: Layout,
    kept: Precision,
    counts: tuple[Number, Number],
    tokens: Number,
) -> list[Traffic]:
    """Return what shares keys and values: forward once, backward they and gradients.

    A ring hands each block on n - 1 times; the gradients take one hop more, home to
    the rank whose block it is: 3 n - 2 hops. ``counts`` are the layers' passes, and of
    these the ones whose forward is run again.
    """
    (passes, again), n = counts, layout.cp
    more = ", forward again where it is recomputed" if again else ""
    if layout.cp_kind == "ulysses":
        each = 2 * (shape.heads + shape.kv_heads) * shape.head_dim
        if shape.kv_rank:  # a key is as wide as a query, an output as a value
            each = 2 * (shape.query_size + shape.value_size)
        size = divide(kept.activation * tokens * each, layout.tp)
        why = "queries, keys, values and output, forward and backward, each layer"
        calls = 2 * passes + again
        return [Traffic("cp", "all-to-all", calls, size, n, why + more, ULYSSES)]
    heads = divide(max(shape.kv_heads, layout.tp), layout.tp)
    block = 2 * kept.activation * tokens * heads * shape.head_dim
    if shape.kv_rank:
        width = divide(shape.query_size + shape.value_size, layout.tp)
        block = kept.activation * tokens * width
    if layout.cp_kind == "all-gather":
        why = f"2 a layer: keys and values, forward and backward{more}"
        calls = 2 * passes + again
        back = "1 a layer: their gradients"
        return [
            Traffic("cp", "all-gather", calls, block * n, n, why, GATHERED),
            Traffic("cp", "reduce-scatter", passes, block * n, n, back, GATHERED),
        ]
    why = f"3 a layer: keys and values forward, they and their gradients backward{more}"
    home = "1 a layer: the gradients' last hop, to the owner of their block"
    return [
        Traffic("cp", "all-gather", 3 * passes + again, block * n, n, why, RING),
        Traffic("cp", "send-recv", passes, block, 2, home, RING_HOME, "hop home"),
    ]


def _tp_ends(
    shape: Shape, layout: Layout, size: Number, tokens: Number, rank: int | None
) -> list[Traffic]:
    """Return the collectives of the embedding, and of output matrix and loss.

    Learned positions are added to whole sequences: what ranks looked up is summed on
    each of them, and cut thereafter.
    A rank with both ends of DualPipe's two directions meets each in half of them.
    """
    first, last = (True, True) if rank is None else layout.ends(rank)
    tp, here = layout.tp, 1 if rank is None else layout.stages_of_rank
    m = divide(layout.microbatches, here)
    sp = layout.shards_sequence
    closing = "reduce-scatter" if sp else "all-reduce"
    found: list[Traffic] = []
    if first:
        op, source = ("all-reduce", SUMMED) if shape.positions else (closing, MEGATRON)
        found.append(Traffic("tp", op, m, size, tp, "forward", source, "embedding"))
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
