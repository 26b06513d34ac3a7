"""Megatron-LM's own report of theoretical memory, and why ours differs from it.

Source: megatron/training/theoretical_memory_usage.py, core_v0.16.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from readerkit.estimate.defaults import PRECISION
from readerkit.estimate.fit import check_fit
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import (
    activation_pieces,
    most_loaded,
    rank_memory,
    rank_weights,
)
from readerkit.estimate.memory_estimates import add_layers, add_parameters
from readerkit.estimate.parameters import (
    attention_parameters,
    mlp_parameters,
    moe_parameters,
    norm_parameters,
)
from readerkit.estimate.quantity import Number, divide, minimum
from readerkit.estimate.rank_layers import layers_of_rank
from readerkit.estimate.reports import Counted, write_differences
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import precision
from readerkit.wording.numbers import format_bytes

TOOL = "Megatron-LM core_v0.16.1, megatron/training/theoretical_memory_usage.py"
MEBIBYTE = 2**20


def estimate_megatron_report(
    shape: Shape, layout: Layout, *, convention: str = PRECISION
) -> Estimate:
    """Return what Megatron-LM reports, and each difference of our estimate to it.

    Raises:
        EstimateError: a layout that the model cannot be cut into.
    """
    check_fit(shape, layout)
    sheet = Worksheet("Megatron-LM's theoretical memory")
    one, cut, kept = shape.named(), layout.named(), precision(convention)
    parts = list(_parameters(one, cut))
    each: Number = 18
    if layout.zero:
        each = 6 + divide(12, cut.dp)
    said = "its most loaded shard: the first"
    sheet.write(
        f"parameters of the shard [parameters] = shard | {TOOL} | {said}",
        shard=sum(part.theirs for part in parts) + _tables(one, cut),
    )
    acts = list(_activations(one, cut))
    sheet.write(
        f"""
        weight and optimizer [bytes] = parameters of the shard × each | {TOOL}
            | 18 bytes a parameter; with the distributed optimizer 6 + 12 / dp
        activation [bytes] = held | {TOOL} | {_branch(layout)}
        theoretical memory [bytes] = weight and optimizer + activation | {TOOL}
            | it divides by 2^20 and prints MB
        """,
        each=each,
        held=sum(part.theirs for part in acts),
    )
    held = rank_memory(one, cut, kept.named(), 0)
    add_parameters(sheet, held.dense, held.expert, layout, 0)
    add_layers(sheet, held, one, cut, kept)
    ours = held.weights + held.gradients + held.optimizer
    states = [part._replace(factor=each) for part in parts]
    states.append(
        Counted(
            "states of a parameter",
            ours,
            held.params * each,
            "the optimizer is shared by dp × cp ranks, experts' by their replicas; "
            f"stages 2 and 3; {convention}",
        )
    )
    if held.gathered:
        states.append(Counted("gathered units", held.gathered, 0, "stage 3"))
    write_differences(sheet, "theoretical memory", [*states, *acts])
    sheet.notes.append(_printed(sheet))
    most = most_loaded(shape, layout, kept)
    if most.rank:
        sheet.notes.append(
            f"pipeline rank {most.rank} holds more: {format_bytes(most.total, 2)}"
        )
    return sheet.estimate()


def _printed(sheet: Worksheet) -> str:
    names = ("weight and optimizer", "activation", "theoretical memory")
    mebibytes = [float(sheet[name]) / MEBIBYTE for name in names]
    texts = (
        f"{name} {size:.2f} MB" for name, size in zip(names, mebibytes, strict=True)
    )
    return f"as Megatron-LM prints it: {', '.join(texts)}"


# --- parameters -----------------------------------------------------------------------


def _parameters(shape: Shape, layout: Layout) -> Iterator[Counted]:
    """Return the parameters of the first rank, part by part, without the tables."""
    no: dict[str, Any] = dict.fromkeys(
        ("qkv_bias", "attention_output_bias", "mlp_bias", "router_bias"), False
    )
    bare = shape._replace(**no, attention_sinks=False, qk_norm=False)
    dense, moe = layers_of_rank(shape, layout, 0)
    shard = layout.pp * layout.tp
    one = attention_parameters(bare)
    yield Counted(
        "attention",
        (dense + moe) * (divide(one.split, layout.tp) + one.whole),
        divide(shape.layers * one.total, shard),
        "the way down to latents is whole on each rank; layers as the first rank has "
        "them",
    )
    plain = mlp_parameters(bare, shape.ffn).total
    shared = mlp_parameters(bare, shape.shared_ffn).total if shape.shared_ffn else 0
    yield Counted(
        "feed-forward",
        divide(dense * plain + moe * shared, layout.tp),
        divide(shape.plain_layers * plain + shape.moe_layers * shared, shard),
        "layers as the first rank has them",
    )
    if shape.experts:
        experts = moe_parameters(bare)
        yield Counted(
            "experts",
            divide(moe * experts.expert, layout.expert_ranks),
            divide(shape.moe_layers * experts.expert, shard),
            "it does not cut experts over expert-parallel ranks",
        )
        yield Counted("routers", moe * experts.whole, 0, "it counts none")
    norm = norm_parameters(shape)
    ends = shape.embedding_norm + (shape.final_norm and layout.pp == 1)
    yield Counted(
        "norms",
        ((dense + moe) * shape.norms_per_layer + ends) * norm,
        divide((2 * shape.layers + 1) * norm, shard),
        "it divides them by tp, and the last one by pp; each rank holds them whole",
    )
    yield Counted(
        "biases",
        sum(rank_weights(shape, layout, 0)) - sum(rank_weights(bare, layout, 0)),
        0,
        "it counts none; and no norms of queries and keys",
    )
    yield Counted("positions", shape.positions * shape.hidden, 0, "it counts none")


def _tables(shape: Shape, layout: Layout) -> Number:
    """Return the token table, and the output matrix where one rank has both."""
    both = layout.pp == 1 and not shape.tied_embeddings
    table = divide(shape.padded_vocab(layout.tp) * shape.hidden, layout.tp)
    return (1 + both) * table


# --- activations ----------------------------------------------------------------------


def _branch(layout: Layout) -> str:
    if _is_cut(layout):
        return "sequence parallel and selective recompute: table 2 of 2205.05198"
    return "without both sequence parallel and selective recompute: and 5% more"


def _is_cut(layout: Layout) -> bool:
    # Modules with commas between are its selective granularity too.
    return layout.shards_sequence and layout.recompute not in ("none", "full")


def _activations(shape: Shape, layout: Layout) -> Iterator[Counted]:
    """Return the activations of the first rank, part by part."""
    s, b, h, tp = layout.sequence, layout.micro_batch, shape.hidden, layout.tp
    vocab = shape.padded_vocab(tp)
    layer: Number = s * b * (18 * h + 4 * shape.ffn)
    output: Number = 4 * s * b * (h + vocab)
    shared, more = tp, Fraction(1)
    if not _is_cut(layout):
        layer = s * b * h * (10 + divide(24, tp))
        output, shared = 2 * (divide(s * b * vocab, tp) + s * b * h), 1
        more = Fraction(21, 20)
    flight = _in_flight(layout)

    def theirs(value: Number) -> Number:
        return divide(value * flight * more.numerator, shared * more.denominator)

    kept = 2
    (pieces,) = activation_pieces(shape, layout, [0], element_bytes=kept)
    ours = pieces.held(layout.pipeline)
    mask: Number = pieces.embedding_mask
    if mask:
        mask = mask * layout.pipeline.first_chunks_in_flight(0)
    yield Counted(
        "layers",
        ours - mask,
        theirs(layer * shape.layers),
        "it counts a plain feed-forward with biases and dropout, as many key heads as "
        "heads, no scores, and the whole sequence on each context-parallel rank",
    )
    yield Counted(
        "token ids", 0, theirs(8 * s * b * layout.pp), "8 bytes of each; ours has none"
    )
    yield Counted(
        "mask after the embedding",
        mask,
        theirs(s * b * h * layout.pp),
        "ours has it where there is dropout, of the microbatches in flight",
    )
    alone = divide(output * more.numerator, shared * more.denominator)
    yield Counted(
        "output",
        pieces.logits,
        alone if layout.pp == 1 else 0,
        "last norm and logits; without sequence parallel it keeps these in 2 bytes",
    )
    yield Counted("one layer recomputed", pieces.recomputed, 0, "it counts none")


def _in_flight(layout: Layout) -> Number:
    """Return passes of all the model's layers that it takes the first rank to hold."""
    p, v = layout.pp, layout.virtual_stages
    if v > 1:
        return 1 + divide(p - 1, p * v)
    return minimum(1, divide(layout.microbatches, p)) if p > 1 else 1
