"""Memory of the most loaded GPU: which weights, states and activations it holds.

Leaves out what depends on the allocator (fragmentation), the CUDA context and the
buffers of NCCL; a caller keeps a share of the GPU for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from readerkit.estimate.activations import LayerKind, layer_bytes
from readerkit.estimate.bubble import Flight, Pipeline
from readerkit.estimate.layout import Layout
from readerkit.estimate.parameters import (
    Weights,
    embedding_parameters,
    head_parameters,
    layer_parameters,
)
from readerkit.estimate.quantity import Number, divide, named
from readerkit.estimate.rank_layers import (
    first_chunks,
    layers_of_rank,
    telling_ranks,
)
from readerkit.estimate.shape import NamedShape, Shape, cache_plain
from readerkit.estimate.states import OFFLOAD, Precision

ON_GPU = "parameters on the GPU"

# --- 1. which weights a rank holds ----------------------------------------------------


def rank_weights(shape: Shape, layout: Layout, rank: int) -> tuple[Number, Number]:
    """Return the parameters on one rank of a pipeline stage: dense, and of experts."""
    layers = layers_of_rank(shape, layout, rank)
    held = _stage_weights(shape, layers, layout.ends(rank), layout.tp)
    return (
        divide(held.split, layout.tp) + held.whole,
        divide(held.expert, layout.expert_ranks),
    )


def first_chunk_weights(shape: Shape, layout: Layout) -> tuple[Number, Number]:
    """Return the parameters of the first rank's first chunk: dense, and of experts."""
    plain = shape.plain() if isinstance(shape, NamedShape) else shape
    dense, moe = first_chunks(plain, layout)[0]
    if isinstance(shape, NamedShape):
        dense = shape.call("n_1", dense, "dense layers of the first chunk")
        moe = shape.call("n_1e", moe, "expert layers of the first chunk")
    held = _stage_weights(shape, (dense, moe), (True, False), layout.tp)
    return (
        divide(held.split, layout.tp) + held.whole,
        divide(held.expert, layout.expert_ranks),
    )


def named_weights(dense: Number, expert: Number) -> tuple[Number, Number]:
    """Return parameters of a GPU under the names that they have in estimates."""
    whole = "dense parameters" if expert else ON_GPU
    return named(dense, whole), named(expert, "experts' parameters")


@cache_plain
def _stage_weights(
    shape: Shape, layers: tuple[int, int], ends: tuple[bool, bool], tp: int
) -> Weights:
    (dense, moe), (first, last) = layers, ends
    vocab = shape.padded_vocab(tp)
    held = Weights()
    if dense:
        held += layer_parameters(shape, moe=False).times(dense)
    if moe:
        held += layer_parameters(shape, moe=True).times(moe)
    if first:
        held += embedding_parameters(shape, vocab)
    if last:
        # A tied table stands on the first and the last stage, as two copies.
        tied = shape.tied_embeddings and first
        held += head_parameters(shape, vocab, tied=tied)
    return held


# --- 2. bytes on one rank -------------------------------------------------------------


class RankMemory(NamedTuple):
    """Parameters on one GPU of one pipeline rank, and the bytes it holds."""

    rank: int
    dense: Number
    """Parameters that are no routed experts'."""
    expert: Number
    weights: Number
    gradients: Number
    optimizer: Number
    master: Number
    """The part of the optimizer's that exists before the first step."""
    gathered: Number
    """Weights, and one unit's gradients, that stage 3 holds whole for a while."""
    activations: Number
    recomputed: Number
    """The working set of one layer that is computed anew in the backward pass."""
    logits: Number

    @property
    def params(self) -> Number:
        """Parameters on the GPU."""
        return self.dense + self.expert

    @property
    def total(self) -> Number:
        """All of it, at the peak of a step."""
        return (
            self.weights
            + self.gradients
            + self.optimizer
            + self.gathered
            + self.activations
            + self.recomputed
            + self.logits
        )


def rank_memory(shape: Shape, layout: Layout, kept: Precision, rank: int) -> RankMemory:
    """Return the bytes on one GPU of a pipeline rank."""
    dense, expert = rank_weights(shape, layout, rank)
    states = state_bytes(*named_weights(dense, expert), layout, kept)
    (pieces,) = activation_pieces(shape, layout, [rank], element_bytes=kept.activation)
    return RankMemory(
        rank,
        dense,
        expert,
        *states,
        gathered=gathered_bytes(shape, layout, kept, rank),
        activations=pieces.held(layout.pipeline),
        recomputed=pieces.recomputed,
        logits=pieces.logits,
    )


def state_bytes(
    dense: Number, expert: Number, layout: Layout, kept: Precision
) -> tuple[Number, Number, Number, Number]:
    """Return weights, gradients, optimizer, and the master copy that is part of it."""
    taken = OFFLOAD[layout.offload].takes

    def held(size: int, sharded_from: int, name: str) -> Number:
        return 0 if name in taken else _share(dense, expert, layout, size, sharded_from)

    return (
        held(kept.weight, 3, "weights"),
        held(kept.gradient, 2, "gradients"),
        held(kept.optimizer, 1, "optimizer"),
        held(kept.master, 1, "optimizer"),
    )


def offloaded_bytes(
    dense: Number, expert: Number, layout: Layout, kept: Precision
) -> Number:
    """Return what one GPU has in CPU memory or on NVMe, in one copy."""
    taken = OFFLOAD[layout.offload].takes
    parts = zip(("weights", "gradients", "optimizer"), kept.sharded, strict=True)
    return sum(
        _share(dense, expert, layout, size, sharded_from)
        for name, (size, sharded_from) in parts
        if name in taken
    )


def _share(
    dense: Number, expert: Number, layout: Layout, size: int, sharded_from: int
) -> Number:
    """Return one rank's part of a state of so many bytes a parameter."""
    if layout.zero < sharded_from:
        return size * (dense + expert)
    shared = divide(size * dense, layout.replicas)
    return shared + divide(size * expert, layout.expert_replicas)


def gathered_bytes(shape: Shape, layout: Layout, kept: Precision, rank: int) -> Number:
    """Two layers' weights in flight, and one layer's gradients before their sum."""
    away = "weights" in OFFLOAD[layout.offload].takes
    if layout.zero < 3 or (layout.replicas == 1 and not away):
        return 0
    _, moe = layers_of_rank(shape, layout, rank)
    unit = layer_parameters(shape, moe=bool(moe))
    params = divide(unit.split, layout.tp) + unit.whole
    params += divide(unit.expert, layout.expert_ranks)
    return params * (2 * kept.weight + kept.gradient)


def rank_layer_bytes(
    shape: Shape, layout: Layout, recompute: str, *, moe: bool, element_bytes: int = 2
) -> Number:
    """Return the activation bytes one layer keeps of one microbatch on one rank."""
    kind = LayerKind(
        layout.rank_sequence,
        layout.micro_batch,
        layout.tp,
        layout.shards_sequence,
        recompute,
        layout.flash,
        moe,
        element_bytes,
        layout.ranks_of_expert if layout.gathers_copies else 1,
    )
    return layer_bytes(shape, kind)


def layer_name(*, moe: bool, whole: bool = False) -> str:
    """Return the name of one layer's activations in an estimate."""
    kind = "an expert layer" if moe else "a layer"
    return f"{kind} without recompute" if whole else f"kept by {kind}"


class ActivationPieces(NamedTuple):
    """The activations of one pipeline rank, before the schedule multiplies them."""

    rank: int
    one_pass: Number
    """Of one microbatch through all of the rank's layers."""
    embedding_mask: Number
    """Of one microbatch: the dropout mask after the embedding, on the first rank."""
    recomputed: Number
    logits: Number

    def times(self, micro_batch: int) -> ActivationPieces:
        """Return the pieces of as many sequences."""
        parts = (self.one_pass, self.embedding_mask, self.recomputed, self.logits)
        return ActivationPieces(self.rank, *(part * micro_batch for part in parts))

    def peak(self, pipeline: Pipeline, flight: Flight) -> Number:
        """Return all that activations take on the rank at its peak."""
        return self.held(pipeline, flight) + self.recomputed + self.logits

    def held(self, pipeline: Pipeline, flight: Flight | None = None) -> Number:
        """Return the activation bytes that the rank holds at its peak.

        A search asks often, and knows what is in flight on the rank.
        """
        chunks, parts = flight or pipeline.flight(self.rank)
        layers = self.one_pass * chunks
        if parts > 1:
            layers = divide(layers, parts)
        if not self.embedding_mask:
            return layers
        # Only the first chunk of the first rank has the embedding and its mask.
        return layers + self.embedding_mask * pipeline.first_chunks_in_flight(self.rank)


def activation_pieces(
    shape: Shape, layout: Layout, ranks: Iterable[int], *, element_bytes: int = 2
) -> list[ActivationPieces]:
    """Return one microbatch's activations on each of some ranks, piece by piece."""
    kinds = (bool(shape.plain_layers), False), (bool(shape.moe_layers), True)
    layers = [
        _one_layer(shape, layout, moe, element_bytes) if there else (0, 0)
        for there, moe in kinds
    ]
    anew = int(layout.recompute_layers) * int(layout.virtual_stages)
    mask: Number = 0
    if shape.dropout:
        tokens = layout.rank_sequence * layout.micro_batch
        mask = divide(tokens * shape.hidden, layout.sequence_shard)
    logits = _logits(shape, layout, element_bytes)
    found = []
    for rank in ranks:
        one_pass: Number = 0
        again: Number = 0
        counts, left = layers_of_rank(shape, layout, rank), anew
        for count, (kept, dropped) in zip(counts, layers, strict=True):
            if count:
                one_pass += count * kept
                again = max(again, dropped)
                if anew and count > left:  # the first so many alone are, of the rank's
                    one_pass += (count - left) * dropped
                left = max(0, left - int(count))
        first, last = layout.ends(rank)
        found.append(
            ActivationPieces(
                rank, one_pass, mask if first else 0, again, logits if last else 0
            )
        )
    return found


def _one_layer(
    shape: Shape, layout: Layout, moe: bool, element_bytes: int
) -> tuple[Number, Number]:
    """Return the bytes a layer keeps of a microbatch, and those recompute drops."""
    kept, whole = (
        rank_layer_bytes(shape, layout, kind, moe=moe, element_bytes=element_bytes)
        for kind in (layout.recompute, "none")
    )
    kept = named(kept, layer_name(moe=moe))
    if not whole > kept:
        return kept, 0
    return kept, named(whole, layer_name(moe=moe, whole=True)) - kept


def _logits(shape: Shape, layout: Layout, element_bytes: int) -> Number:
    """Return s b (2 w h + 4 V) / t: last norm, output matrix, fp32 logits."""
    tokens = layout.rank_sequence * layout.micro_batch
    vocab = shape.padded_vocab(layout.tp)
    inputs = divide(2 * element_bytes * tokens * shape.hidden, layout.sequence_shard)
    return inputs + divide(4 * tokens * vocab, layout.tp)


def most_loaded(shape: Shape, layout: Layout, kept: Precision) -> RankMemory:
    """Return the pipeline rank whose GPU holds most."""
    each = (
        rank_memory(shape, layout, kept, rank)
        for rank in telling_ranks(shape, layout.pp)
    )
    return max(each, key=lambda memory: memory.total)
